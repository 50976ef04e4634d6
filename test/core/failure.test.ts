import { describe, expect, test } from "vitest";
import { failureKinds, mayPass, rejectionKind, taskFailureKind } from "../../src/core/failure.js";

describe("why a task failed shows in its message", () => {
  test.each([
    "Blocked by moderation",
    "Violates our content policy",
    "policy violation: violence",
    "The result was unsafe",
    "stopped by the safety system",
    "NSFW content detected",
    "prohibited content",
    "The prompt was flagged",
    "sensitive content",
    "the provider rejected the prompt as unsafe",
    "content_policy_violation: The prompt names a person",
    "Forbidden: blocked by policy",
  ])("moderation: %s", (message) => {
    expect(taskFailureKind(message)).toBe("moderation");
  });

  test.each([
    "bad param: strength",
    "params are wrong",
    "invalid parameter",
    "Parameters do not match",
    "aspect ratio 5:1 is not known",
    "unknown aspect_ratio",
    "unsupported value 9",
    "unsupported option",
    "9:1 is not one of 1:1, 16:9",
    "not a valid option",
    "INVALID_MODEL",
  ])("a parameter: %s", (message) => {
    expect(taskFailureKind(message)).toBe("parameter");
  });

  test.each([
    "bad input",
    "inputs are too large",
    "image_url cannot be reached",
    "could not fetch the image",
    "failed while downloading an video",
    "reading a file failed",
    "Error decoding image",
    "decoded media is empty",
    "could not open audio",
    "could not decode image",
    "MISSING_PROMPT",
    "a prompt is required",
    "body.prompt: prompt too long",
    "the image is too large",
  ])("an input: %s", (message) => {
    expect(taskFailureKind(message)).toBe("input");
  });

  test.each([
    "provider error",
    "upstream failed",
    "internal failure",
    "timed out",
    "time out",
    "request timeout",
    "temporarily down",
    "overloaded",
    "service unavailable",
    "out of capacity",
    "please try again",
    "server error",
    "CUDA out of memory",
  ])("the provider: %s", (message) => {
    expect(taskFailureKind(message)).toBe("provider");
  });

  test("the provider, whatever a program of bulkgen's own service printed", () => {
    const said =
      "The provider failed: the program failed with exit code 1: required input is missing, bad param";
    expect(taskFailureKind(said)).toBe("provider");
  });

  test.each(["", "Something went wrong", "a paramount parametric view", "opened imagination"])(
    "unknown: %j",
    (message) => {
      expect(taskFailureKind(message)).toBe("unknown");
    },
  );
});

test("only what may pass is retried as it is: a failure of the provider, or one of which nothing is known", () => {
  expect(failureKinds.filter(mayPass)).toEqual(["provider", "unknown"]);
});

test("a refused request is never the provider's failure: its code or its message tells what is wrong", () => {
  expect(rejectionKind("INVALID_MODEL", null)).toBe("parameter");
  expect(rejectionKind(null, "the prompt was flagged")).toBe("moderation");
  expect(rejectionKind("BAD", "provider error")).toBe("input");
  expect(rejectionKind("MISSING_URL", "gone")).toBe("input");
  expect(rejectionKind(null, null)).toBe("input");
});
