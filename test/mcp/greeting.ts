/** The parameters of `initialize`, the first request of every agent. */
export const greeting = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
};
