/** The proxies that the usual variables name: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in capitals or not. */
export interface Proxies {
  /** For plain http; the empty text for none. */
  http: string;
  /** For https; the empty text for none. */
  https: string;
  /** Hosts that are reached without a proxy, as in NO_PROXY. */
  except: string;
  /** The variables that are set, for messages. An address may contain a password, so no message shows it. */
  from: string;
}

/** A variable that names no proxy. */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
}

/** No proxy leads to this machine. */
const ownHosts = ["localhost", "127.0.0.1", "[::1]"];

/** Null if none is set. Throws ProxyError. */
export function proxiesIn(environment: Readonly<Record<string, string | undefined>>): Proxies | null {
  const set = (name: string) => {
    const variable = [name.toLowerCase(), name].find((each) => environment[each]?.trim());
    return variable === undefined ? null : { variable, text: environment[variable]?.trim() ?? "" };
  };
  const [http, https] = [set("HTTP_PROXY"), set("HTTPS_PROXY")];
  if (http === null && https === null) return null;
  const except = set("NO_PROXY")?.text ?? "";
  return {
    http: http === null ? "" : addressOf(http),
    https: https === null ? "" : addressOf(https),
    except: except === "*" ? except : [except, ...ownHosts].join(","),
    from: [https, http].flatMap((each) => each?.variable ?? []).join(" and "),
  };
}

/** Many write a host and a port alone. */
function addressOf({ variable, text }: { variable: string; text: string }): string {
  const address = text.includes("://") ? text : `http://${text}`;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return address;
  throw new ProxyError(
    `${variable}: expected the address of a proxy, such as http://proxy.example:3128, got something else`,
  );
}
