// The Vercel AI SDK with its OpenAI provider: `node vercel.mjs <scenario> <argument as JSON>`. Prints one JSON value.

import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const [scenario, { model, api }] = [process.argv[2], JSON.parse(process.argv[3])];
const openai = createOpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: "none" });
const chosen = api === "chat" ? openai.chat(model) : openai.responses(model);
const tools = {
  get_weather: tool({
    description: "The weather",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `rain in ${city}`,
  }),
};
const common = { model: chosen, maxRetries: 0 };

const scenarios = {
  async text() {
    const result = streamText({ ...common, system: "Be kind.", prompt: "Hello" });
    let text = "";
    for await (const piece of result.textStream) text += piece;
    const { text: whole } = await generateText({ ...common, prompt: "Hello" });
    return {
      text,
      whole,
      reasoning: await result.reasoningText,
      finish: await result.finishReason,
      usage: await result.usage,
    };
  },
  async tools() {
    const result = streamText({ ...common, prompt: "Weather?", tools, stopWhen: stepCountIs(3) });
    await result.consumeStream();
    const steps = await result.steps;
    return {
      text: await result.text,
      calls: steps.flatMap((step) => step.toolCalls.map((call) => [call.toolName, call.input])),
      results: steps.flatMap((step) => step.toolResults.map((found) => found.output)),
    };
  },
  async structured() {
    const schema = z.object({ place: z.string(), hours: z.array(z.number()) });
    const { output } = await generateText({ ...common, prompt: "Tides?", output: Output.object({ schema }) });
    return output;
  },
};

process.stdout.write(`${JSON.stringify(await scenarios[scenario]())}\n`);
