// The Vercel AI SDK with its OpenAI, OpenAI-compatible and Anthropic providers.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";
import { serve, told } from "./scenarios.mjs";

const apis = {
  responses: (url, model) => createOpenAI({ baseURL: url, apiKey: "none" }).responses(model),
  chat: (url, model) => createOpenAI({ baseURL: url, apiKey: "none" }).chat(model),
  compatible: (url, model) =>
    createOpenAICompatible({ name: "holdfast", baseURL: url, apiKey: "none", supportsStructuredOutputs: true })(model),
  anthropic: (url, model) => createAnthropic({ baseURL: url, apiKey: "none" })(model),
};
const common = ({ url, model, api }) => ({ model: apis[api](url, model), maxRetries: 0, onError: () => {} });
const tools = {
  get_weather: tool({
    description: "The weather",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `rain in ${city}`,
  }),
};

await serve({
  async plain(how) {
    const { text: whole } = await generateText({ ...common(how), system: "Be kind.", prompt: "Hello" });
    const result = streamText({ ...common(how), prompt: "Hello" });
    let text = "";
    for await (const piece of result.textStream) text += piece;
    return [whole, text, await result.finishReason];
  },
  async tools(how) {
    const result = streamText({ ...common(how), prompt: "Weather?", tools, stopWhen: stepCountIs(3) });
    await result.consumeStream();
    const second = await generateText({
      ...common(how),
      tools,
      messages: [
        { role: "user", content: "Weather?" },
        ...(await result.response).messages,
        { role: "user", content: "Sure?" },
      ],
    });
    const steps = await result.steps;
    return [steps.flatMap((step) => step.toolResults.map((found) => found.output)), await result.text, second.text];
  },
  async structured(how) {
    const schema = z.object({ place: z.string(), hours: z.array(z.number()) });
    const { output } = await generateText({ ...common(how), prompt: "Tides?", output: Output.object({ schema }) });
    return output;
  },
  // What a whole and a streamed call throw, and the parts of the stream.
  async fails(how) {
    const parts = [];
    let message = null;
    const stream = await told(async () => {
      for await (const part of streamText({ ...common(how), prompt: "Hello" }).fullStream) {
        parts.push(part.type);
        if (part.type === "error") message = part.error.message ?? part.error;
      }
    });
    return { whole: await told(() => generateText({ ...common(how), prompt: "Hello" })), stream, parts, message };
  },
  async leave(how) {
    const stop = new AbortController();
    const result = streamText({ ...common(how), prompt: "Hello", abortSignal: stop.signal });
    for await (const part of result.fullStream) {
      if (part.type === "text-delta") stop.abort();
      if (part.type === "abort") return true;
    }
  },
});
