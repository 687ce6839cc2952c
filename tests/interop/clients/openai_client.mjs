// The official Node client.

import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";
import { serve, told } from "./scenarios.mjs";

const clientOf = (url) => new OpenAI({ baseURL: url, apiKey: "none", maxRetries: 0, timeout: 30000 });
const messages = [{ role: "user", content: "Hello" }];
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const Tide = z.object({ place: z.string(), hours: z.array(z.number()) });

async function all(stream) {
  const seen = [];
  for await (const event of stream) seen.push(event);
  return seen;
}

await serve({
  async plain({ url, model }) {
    const client = clientOf(url);
    const chat = await client.chat.completions.create({ model, messages });
    const chunks = await all(await client.chat.completions.create({ model, messages, stream: true }));
    const response = await client.responses.create({ model, input: "Hello" });
    const streamed = await client.responses.stream({ model, input: "Hello" }).finalResponse();
    return [
      chat.choices[0].message.content,
      chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""),
      response.output_text,
      streamed.output_text,
    ];
  },
  async tools({ url, model }) {
    const runner = clientOf(url).chat.completions.runTools({
      model,
      messages,
      stream: true,
      tools: [
        {
          type: "function",
          function: {
            name: "get_weather",
            parameters,
            parse: JSON.parse,
            function: ({ city }) => `rain in ${city}`,
          },
        },
      ],
    });
    return await runner.finalContent();
  },
  async responseTools({ url, model }) {
    const client = clientOf(url);
    const tools = [{ type: "function", name: "get_weather", parameters, strict: true }];
    const first = await client.responses.create({ model, input: "Weather?", tools });
    const call = first.output.find((item) => item.type === "function_call");
    const input = [{ type: "function_call_output", call_id: call.call_id, output: "rain" }];
    const second = await client.responses.create({ model, input, tools, previous_response_id: first.id });
    return [call.arguments, second.output_text];
  },
  async structured({ url, model }) {
    const client = clientOf(url);
    const text = { format: zodTextFormat(Tide, "tide") };
    const { output_parsed: parsed } = await client.responses.parse({ model, input: "Tides?", text });
    const format = zodResponseFormat(Tide, "tide");
    const chat = await client.chat.completions.parse({ model, messages, response_format: format });
    return [parsed, chat.choices[0].message.parsed];
  },
  async failures({ url, model }) {
    const client = clientOf(url);
    return [
      await told(() => client.responses.create({ model, input: "Hello" })),
      await told(async () => all(await client.responses.create({ model, input: "Hello", stream: true }))),
      await told(() => client.chat.completions.create({ model, messages })),
      await told(async () => all(await client.chat.completions.create({ model, messages, stream: true }))),
    ];
  },
  async leave({ url, model }) {
    const stream = await clientOf(url).responses.create({ model, input: "Go", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") return event.delta;
  },
  async begin({ url, model }) {
    let id;
    const stream = await clientOf(url).responses.create({ model, input: "Go", stream: true, background: true });
    for await (const event of stream) {
      id ??= event.response?.id;
      if (event.type === "response.output_text.delta") return [id, event.sequence_number, event.delta];
    }
  },
  async resume({ url, response, after }) {
    const client = clientOf(url);
    const events = await all(await client.responses.retrieve(response, { stream: true, starting_after: after }));
    const text = events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
    const whole = await client.responses.retrieve(response);
    return [events.map((event) => event.sequence_number), text, whole.status, whole.output_text];
  },
  async cancel({ url, model }) {
    const client = clientOf(url);
    let id;
    let last;
    for await (const event of await client.responses.create({ model, input: "Go", stream: true, background: true })) {
      id ??= event.response?.id;
      if (event.type === "response.output_text.delta") await client.responses.cancel(id);
      last = event;
    }
    return [last.type, last.response.status, (await client.responses.retrieve(id)).output_text];
  },
});
