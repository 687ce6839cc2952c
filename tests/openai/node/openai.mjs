// The official Node client, a scenario at a time: `node openai.mjs <scenario> <argument as JSON>`. Prints one JSON value.

import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const [scenario, argument] = [process.argv[2], JSON.parse(process.argv[3])];
const client = new OpenAI({ baseURL: process.env.HOLDFAST_URL, apiKey: "none", maxRetries: 0 });
const { model, id, after, tool, chatTool } = argument;
const Tide = z.object({ place: z.string(), hours: z.array(z.number()) });
const user = [{ role: "user", content: "Weather?" }];

async function all(stream) {
  const seen = [];
  for await (const event of stream) seen.push(event);
  return seen;
}

const scenarios = {
  async text() {
    const whole = await client.responses.create({ model, input: "Hello", instructions: "Be kind." });
    const events = await all(await client.responses.create({ model, input: "Hello", stream: true }));
    return { status: whole.status, text: whole.output_text, kinds: whole.output.map((item) => item.type), events };
  },
  async structured() {
    const helper = client.responses.stream({ model, input: "Tides?", text: { format: zodTextFormat(Tide, "tide") } });
    const final = await helper.finalResponse();
    const parsed = await client.responses.parse({
      model,
      input: "Tides?",
      text: { format: zodTextFormat(Tide, "tide") },
    });
    return { streamed: final.output_parsed, parsed: parsed.output_parsed };
  },
  async tools() {
    const first = await client.responses.create({ model, input: "Weather?", tools: [tool] });
    const call = first.output.find((item) => item.type === "function_call");
    const second = await client.responses.create({
      model,
      tools: [tool],
      previous_response_id: first.id,
      input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
    });
    return { name: call.name, args: call.arguments, text: second.output_text };
  },
  async chat() {
    const runner = client.chat.completions.stream({ model, messages: user, tools: [chatTool] });
    const { choices } = await runner.finalChatCompletion();
    const [{ message, finish_reason: finish }] = choices;
    const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "rain" };
    const second = await client.chat.completions.create({ model, messages: [...user, message, result] });
    return { finish, args: message.tool_calls[0].function.arguments, text: second.choices[0].message.content };
  },
  async leave() {
    const seen = [];
    for await (const event of await client.responses.create({ model, input: "Count", background: true, stream: true })) {
      seen.push(event);
      if (event.type === "response.output_text.delta") break;
    }
    return seen;
  },
  async resume() {
    return all(await client.responses.retrieve(id, { stream: true, starting_after: after }));
  },
  async cancel() {
    const cancelled = await client.responses.cancel(id);
    return { status: cancelled.status, text: cancelled.output[0].content[0].text };
  },
  async close() {
    const stream = await client.responses.create({ model, input: "Go", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break;
    return true;
  },
  async errors() {
    const told = ({ status, code, param, constructor }) => ({ status, code, param, name: constructor.name });
    return [
      await client.responses.retrieve("resp_none").catch(told),
      await client.responses.create({ model, input: 5 }).catch(told),
      await client.chat.completions.create({ model, messages: user, temperature: "hot" }).catch(told),
    ];
  },
};

process.stdout.write(`${JSON.stringify(await scenarios[scenario]())}\n`);
