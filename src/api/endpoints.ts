/** The service's endpoints. Paths are relative to the base address. */
export const endpoints = {
  generate: { method: "POST", path: "/api/v1/generate" },
  task: { method: "GET", path: "/api/v1/task/:taskId" },
  models: { method: "GET", path: "/api/v1/models" },
  me: { method: "GET", path: "/api/v1/me" },
} as const;

export type Endpoint = keyof typeof endpoints;

/** The path of one task. The id is escaped, so that no id can name another path. */
export function taskPath(taskId: string): string {
  return endpoints.task.path.replace(":taskId", encodeURIComponent(taskId));
}
