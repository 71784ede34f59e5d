// Drives the official AG-UI client for the journeys: one JSON command a line in, one JSON answer a line out.
//
// {"id", "url", "token", "thread", "plurnk", "resume"?, "state"?} runs an agent and answers with what the application
// saw, every raw event judged by the protocol's own schema, and everything that was said on the console.
// {"id", "ping"} answers at once: the process is alive.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";

const complaints = [];
for (const level of ["warn", "error"]) {
  console[level] = (...words) => complaints.push(`${level}: ${words.map(String).join(" ")}`);
}

const agents = new Map();

// Hands the answer on untouched and keeps a copy of its bytes: the client itself strips what it does not know.
function recording(raw) {
  return async (url, options) => {
    const response = await fetch(url, options);
    if (!response.body) return response;
    const [kept, given] = response.body.tee();
    raw.done = (async () => {
      try {
        for await (const chunk of kept.pipeThrough(new TextDecoderStream())) raw.text += chunk;
      } catch (error) {
        raw.broken = String(error);
      }
    })();
    return new Response(given, { status: response.status, headers: response.headers });
  };
}

function judged(text) {
  const events = [];
  const faults = [];
  for (const frame of text.split("\n\n")) {
    const data = frame.split("\n").filter((line) => line.startsWith("data: "));
    if (data.length === 0) continue;
    const event = JSON.parse(data.map((line) => line.slice(6)).join("\n"));
    const verdict = EventSchema.safeParse(event);
    if (!verdict.success) faults.push({ event, issues: verdict.error.issues });
    events.push(event);
  }
  return { events, faults };
}

async function run({ url, token, thread, plurnk, resume, state }) {
  const raw = { text: "", done: Promise.resolve(), broken: null };
  const known = agents.get(thread);
  const agent = known ?? new HttpAgent({ url, threadId: thread, headers: { Authorization: `Bearer ${token}` } });
  agents.set(thread, agent);
  agent.url = url;
  agent.fetch = recording(raw);
  if (state !== undefined) agent.setState(state);
  const before = complaints.length;
  const seen = [];
  const answer = { error: null, status: null, result: null };
  const subscriber = {
    onEvent: ({ event }) => {
      seen.push(event.type);
      if (event.type === "RUN_STARTED") say({ started: thread });
    },
  };
  try {
    const outcome = await agent.runAgent({ forwardedProps: { plurnk }, resume }, subscriber);
    answer.result = outcome.result ?? null;
  } catch (error) {
    answer.error = String(error?.message ?? error);
    answer.status = error?.status ?? null;
  }
  await raw.done;
  return {
    ...answer,
    ...judged(raw.text),
    seen,
    broken: raw.broken,
    state: agent.state,
    messages: agent.messages,
    pending: agent.pendingInterrupts ?? [],
    complaints: complaints.slice(before),
  };
}

function say(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.ping) say({ id: command.id, alive: true });
  else void run(command).then((answer) => say({ id: command.id, ...answer }));
}
