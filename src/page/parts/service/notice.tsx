import { RefusedRequest } from "./client.js";

/** How often a page asks again (ms). */
export const refreshMs = 3_000;

/** What there is to say while, or because, there is nothing to show of a service such as "sandbox". */
export function Notice({ trouble, service }: { trouble: Error | null; service: string }) {
  if (trouble === null) return null;
  const isRefused = trouble instanceof RefusedRequest;
  const title = isRefused ? (trouble.status === 401 ? "Open the link" : "Refused") : "No answer";
  return (
    <main class="notice">
      <h1>{title}</h1>
      <p>
        {isRefused
          ? trouble.message
          : `The ${service} does not answer. Start it again, and open the link that it prints.`}
      </p>
    </main>
  );
}

/** What is said above an older answer, while the service does not give a new one. */
export function NoAnswer({ service }: { service: string }) {
  return (
    <p class="refused" role="alert">
      The {service} does not answer. This page asks again every {refreshMs / 1_000} seconds.
    </p>
  );
}
