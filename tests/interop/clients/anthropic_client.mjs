// The official Anthropic client for Node.

import Anthropic from "@anthropic-ai/sdk";
import { serve, told } from "./scenarios.mjs";

const clientOf = (url) =>
  new Anthropic({ baseURL: url.replace(/\/v1$/, ""), apiKey: "none", maxRetries: 0, timeout: 30000 });
const user = { role: "user", content: "Hello" };
const wanted = (model, ...messages) => ({ model, max_tokens: 500, messages });
const tools = [
  { name: "get_weather", input_schema: { type: "object", properties: { city: { type: "string" } } } },
];

await serve({
  async plain({ url, model }) {
    const client = clientOf(url);
    const whole = await client.messages.create(wanted(model, user));
    const streamed = client.messages.stream(wanted(model, user));
    return [whole.content[0].text, await streamed.finalText(), (await streamed.finalMessage()).stop_reason];
  },
  async tools({ url, model }) {
    const client = clientOf(url);
    const asked = await client.messages.stream({ ...wanted(model, user), tools }).finalMessage();
    const use = asked.content.at(-1);
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: use.id, content: "rain" }] };
    const messages = [user, { role: "assistant", content: asked.content }, result];
    const answer = await client.messages.create({ ...wanted(model, ...messages), tools });
    return [asked.stop_reason, use.input, answer.content[0].text];
  },
  async failures({ url, model }) {
    const client = clientOf(url);
    return [
      await told(() => client.messages.create(wanted(model, user))),
      await told(() => client.messages.stream(wanted(model, user)).done()),
    ];
  },
  async leave({ url, model }) {
    const stream = await clientOf(url).messages.create({ ...wanted(model, user), stream: true });
    for await (const event of stream) if (event.type === "content_block_delta") return event.delta.text;
  },
});
