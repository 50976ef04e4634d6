import { useEffect, useState } from "preact/hooks";

/** Which view is shown, from the fragment of the address: `#/runs/7?state=failed`. */
export interface ViewRoute {
  parts: string[];
  query: URLSearchParams;
}

function routeOf(hash: string): ViewRoute {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    parts: path.split("/").filter(Boolean).map(decoded),
    query: new URLSearchParams(query),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function useRoute(): ViewRoute {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    // It may have changed since the page was drawn for the first time.
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return routeOf(hash);
}

/** The address of a view. */
export function link(...parts: (string | number)[]): string {
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

export function go(hash: string): void {
  location.hash = hash;
}

/** Changes the address of what is shown. */
export function readdress(hash: string): void {
  history.replaceState(null, "", hash);
}
