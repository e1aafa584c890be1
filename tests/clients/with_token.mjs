// Passes HTTP on to a server and adds a token, for programs that cannot send one. Everything else stays as it came,
// Host and Origin above all: they are part of what is tried.
//
//   node with_token.mjs PORT TOKEN      prints the port it listens on
import http from "node:http";

const [port, token] = process.argv.slice(2);

const proxy = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const passed = http.request({ host: "127.0.0.1", port, method: request.method, path: request.url, headers });
  passed.on("response", (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    response.flushHeaders();
    answer.pipe(response);
    answer.on("aborted", () => response.destroy());
  });
  passed.on("error", () => response.destroy());
  response.on("close", () => passed.destroy());
  request.pipe(passed);
});

proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
