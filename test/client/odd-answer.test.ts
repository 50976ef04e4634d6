import { describe, expect, test } from "vitest";
import { answerStatus, answerText, oddBody } from "../../src/client/answer.js";

const answer = (status: number, body: string, headers: Record<string, string> = {}) => ({
  kind: "answer" as const,
  status,
  headers,
  body,
});
const html = { "content-type": "text/html; charset=utf-8" };

describe("an answer that is not the service's", () => {
  test.each([
    ["", {}, "an empty answer"],
    [" \n", html, "an empty answer"],
    [
      "<!doctype html>\n<title>Sign in</title>",
      html,
      'text/html beginning "<!doctype html> <title>Sign in</title>"',
    ],
    ["no json", { "content-type": "application/json" }, 'text beginning "no json"'],
    ["no type", {}, 'text beginning "no type"'],
    ["\u001b]0;title\u0007<p>\u202ered", html, 'text/html beginning "<p>red"'],
    ['{"hello": "world"}', html, null],
    ["null", {}, null],
  ])("%j is told as what it is", (body, headers, told) => {
    expect(oddBody(answer(200, body, headers))).toBe(told);
  });

  test("a long page is cut", () => {
    expect(oddBody(answer(200, "x".repeat(100_000)))).toBe(`text beginning "${"x".repeat(59)}…"`);
  });

  test("a redirect says where to, without what may be secret in the address", () => {
    const to = (location: string) => answerStatus(answer(302, "", { location }));
    expect(to("https://login.example/in?token=abc#d")).toBe(
      "302, a redirect to https://login.example/in, which is not followed",
    );
    expect(to("\u001b[2J/login")).toBe("302, a redirect to /login, which is not followed");
    expect(to(`https://a.example/${"x".repeat(500)}`).length).toBeLessThan(150);
    expect(answerStatus(answer(302, ""))).toBe("302");
    const redirects = [299, 300, 399, 400].map((status) =>
      answerStatus(answer(status, "", { location: "/elsewhere" })).includes("redirect"),
    );
    expect(redirects).toEqual([false, true, true, false]);
  });

  test("a refusal has its code and its message, or the beginning of what it is instead", () => {
    const json = (error: object) => answer(401, JSON.stringify({ error }));
    expect(answerText(json({ code: "INVALID_API_KEY", message: "The key\u001b[1m is unknown." }))).toBe(
      "401 INVALID_API_KEY: The key is unknown.",
    );
    expect(answerText(json({ code: "INVALID_API_KEY" }))).toBe("401 INVALID_API_KEY");
    expect(answerText(answer(404, "<p>nginx</p>", html))).toBe('404 with text/html beginning "<p>nginx</p>"');
    expect(answerText(answer(503, ""))).toBe("503 with an empty answer");
    expect(answerText(answer(400, "<p>", html))).toBe('400 with text/html beginning "<p>"');
    expect(answerText(answer(299, "<p>", html))).toBe('299 with text/html beginning "<p>"');
    // Of a redirect its target says more than its page.
    for (const status of [300, 302, 399]) expect(answerText(answer(status, "<p>", html))).toBe(`${status}`);
    expect(answerText(answer(500, "{}"))).toBe("500");
  });
});
