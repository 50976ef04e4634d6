/** What the benches of planning have in common: the account that they plan for, and the built modules that plan. */
export const me = {
  user: { id: "8c5f7d0e-0000-4000-8000-000000000001", email: "team@example.com", name: null },
  credits: { balance: 10_000_000, used_this_key: 0 },
  subscription: {
    ...{ status: "active", plan: "Enterprise", credits_per_month: 1_000, billing_interval: "month" },
    ...{ current_period_end: "2026-12-01T00:00:00Z", cancel_at_period_end: false },
  },
  api_key: { id: "k", name: "k", requests_count: 0 },
};

export async function fromDist() {
  const names = [
    "manifest/read",
    "manifest/local-inputs",
    "plan/make-plan",
    "store/draft/draft",
    "core/problem",
  ];
  const modules = await Promise.all(names.map((name) => import(`../../dist/${name}.js`)));
  return Object.assign({}, ...modules);
}
