import { RefusedRequest } from "./client.js";

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
