// The official TypeScript clients, old (@modelcontextprotocol/sdk) and new (@modelcontextprotocol/client), on one
// server: the task comes as JSON on standard input, what happened leaves as JSON on standard output.
//
//   {client: "sdk" | "client", era: "legacy" | "2026-07-28", stdio: {command, args, env} | http: {url, token},
//    steps: [{tool, arguments, save?: {name: field}}]}
//
// "$name" as an argument stands for a field that an earlier step saved.
import { text } from "node:stream/consumers";

const task = JSON.parse(await text(process.stdin));

async function loadLibrary() {
  if (task.client === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { Client, StdioClientTransport, StreamableHTTPClientTransport };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  return { Client, StdioClientTransport, StreamableHTTPClientTransport };
}

function makeTransport(library) {
  if (task.stdio) return new library.StdioClientTransport({ ...task.stdio, stderr: "inherit" });
  const headers = { Authorization: `Bearer ${task.http.token}` };
  return new library.StreamableHTTPClientTransport(new URL(task.http.url), { requestInit: { headers } });
}

function fillIn(value, saved) {
  if (typeof value === "string" && value.startsWith("$")) return saved[value.slice(1)];
  if (Array.isArray(value)) return value.map((each) => fillIn(each, saved));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, fillIn(each, saved)]));
  return value;
}

const library = await loadLibrary();
const options = task.era === "legacy" ? {} : { versionNegotiation: { mode: { pin: task.era } } };
const client = new library.Client({ name: `official-${task.client}`, version: "1" }, options);
await client.connect(makeTransport(library));

// Listing compiles the output schemas: every result below is checked against its own.
const { tools } = await client.listTools();
const saved = {};
const results = [];
for (const step of task.steps) {
  try {
    const result = await client.callTool({ name: step.tool, arguments: fillIn(step.arguments, saved) });
    for (const [name, field] of Object.entries(step.save ?? {})) saved[name] = result.structuredContent[field];
    results.push({ tool: step.tool, isError: result.isError ?? false, structured: result.structuredContent, text: result.content[0].text });
  } catch (error) {
    results.push({ tool: step.tool, thrown: String(error) });
  }
}
// Only the default toolset has prompts.
const prompt = client.getServerCapabilities()?.prompts ? await client.getPrompt({ name: "coding_agent" }) : undefined;
console.log(
  JSON.stringify({
    server: client.getServerVersion(),
    instructions: client.getInstructions(),
    tools,
    prompt: prompt?.messages[0].content.text,
    results,
  }),
);
await client.close();
