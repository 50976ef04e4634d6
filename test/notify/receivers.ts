import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { SMTPServer } from "smtp-server";
import { afterThisFile } from "../after-file.js";

/** Real receivers of notifications on loopback. */
export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface Hook {
  url: string;
  received: Received[];
  /** Resolves when so many have come. */
  got(count: number): Promise<void>;
}

/** An HTTP receiver that answers with these statuses in turn, the last one from then on; "hang" never answers. */
export function startHook(...statuses: (number | "hang")[]): Promise<Hook> {
  return startHookWith({}, ...statuses);
}

/** The same with these headers. */
export async function startHookWith(
  headers: Record<string, string>,
  ...statuses: (number | "hang")[]
): Promise<Hook> {
  const received: Received[] = [];
  const waiting: { count: number; resolve(): void }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      body += piece;
    });
    request.on("end", () => {
      const status = statuses[Math.min(received.length, statuses.length - 1)] ?? 200;
      received.push({ path: request.url ?? "", headers: request.headers, body });
      for (const { count, resolve } of waiting) if (received.length >= count) resolve();
      if (status !== "hang") response.writeHead(status, headers).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterThisFile(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    got: (count) =>
      received.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => waiting.push({ count, resolve })),
  };
}

export interface MailBox {
  url: string;
  mails: { from: string; to: string[]; text: string; user: string | null }[];
}

/** A mail server that takes mails from one user. */
export async function startMailServer(user: string, password: string): Promise<MailBox> {
  const mails: MailBox["mails"] = [];
  const server = new SMTPServer({
    authMethods: ["PLAIN"],
    allowInsecureAuth: true,
    hideSTARTTLS: true,
    onAuth: (auth, _session, done) =>
      auth.username === user && auth.password === password
        ? done(null, { user })
        : done(new Error(`wrong password ${auth.password}`)),
    onData(stream, session, done) {
      let text = "";
      stream.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
      });
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom ? mailFrom.address : "",
          to: rcptTo.map(({ address }) => address),
          text,
          user: (session.user as string | undefined) ?? null,
        });
        done();
      });
    },
  });
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  afterThisFile(() => server.close());
  return {
    url: `smtp://${user}:${password}@127.0.0.1:${(server.server.address() as AddressInfo).port}`,
    mails,
  };
}
