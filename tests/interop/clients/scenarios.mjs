// What the Node clients share. They read {scenario, arguments} from lines of standard input, and print a line with each
// outcome.

import { createInterface } from "node:readline";

export async function serve(scenarios) {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    let outcome;
    try {
      outcome = { returned: (await scenarios[order.scenario](order.arguments)) ?? null };
    } catch (error) {
      outcome = { raised: error.stack };
    }
    process.stdout.write(`\n=> ${JSON.stringify(outcome)}\n`);
  }
}

// What the call throws: the name of the error and the status that it carries.
export async function told(call) {
  try {
    await call();
  } catch (error) {
    return [error.constructor.name, error.status ?? error.statusCode ?? null];
  }
  return null;
}
