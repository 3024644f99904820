// A server of protocol 2026-07-28 only, on the reference SDK: over stdio, or over HTTP on PORT.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { McpServer, createMcpHandler, fromJsonSchema } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const text = (value) => ({ content: [{ type: "text", text: value }] });

function make() {
        const server = new McpServer({ name: "modern", version: "1.0.0" });
        server.registerTool("add", {
                description: "Adds two numbers.",
                inputSchema: fromJsonSchema({ type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["a", "b"] }),
        }, async ({ a, b }) => text(String(a + b)));
        server.registerTool("region", {
                description: "Names its region.",
                inputSchema: fromJsonSchema({ type: "object", properties: { where: { type: "string", "x-mcp-header": "Region" } }, required: ["where"] }),
        }, async ({ where }) => text(where));
        server.registerTool("structured", { description: "Only structured.", inputSchema: fromJsonSchema({ type: "object" }) },
                async () => ({ content: [], structuredContent: { temperature: 21 } }));
        server.registerTool("slow", { description: "Reports progress.", inputSchema: fromJsonSchema({ type: "object" }) }, async (_args, ctx) => {
                const progressToken = ctx.mcpReq._meta?.progressToken;
                for (let i = 1; i <= 3; i++) {
                        if (progressToken !== undefined) await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: i, total: 3 } });
                        await new Promise((done) => setTimeout(done, 50));
                }
                return text("slow but done");
        });
        return server;
}

if (!process.env.PORT) {
        serveStdio(make, { legacy: "reject" });
} else {
        const handler = createMcpHandler(make, { legacy: "reject" });
        createServer(async (req, res) => {
                const body = ["GET", "HEAD"].includes(req.method) ? undefined : Readable.toWeb(req);
                const answer = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body, duplex: "half" }));
                res.writeHead(answer.status, Object.fromEntries(answer.headers));
                if (answer.body) Readable.fromWeb(answer.body).on("error", () => res.destroy()).pipe(res);
                else res.end();
        }).listen(Number(process.env.PORT), "127.0.0.1");
}
