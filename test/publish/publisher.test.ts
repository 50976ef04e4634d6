import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isPublishTarget, openPublisher, type PublishPlace } from "../../src/publish/publisher.js";
import { runShell } from "../../src/shell.js";
import { systemClock } from "../../src/system.js";
import { s3Server } from "../bucket/s3-server.js";
import { ManualClock } from "../manual-clock.js";

const hour = 3_600_000;

function photo(name = "shoes/red shoe.png") {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-publish-"));
  const path = join(folder, "red.png");
  writeFileSync(path, "a picture");
  const sha256 = createHash("sha256").update("a picture").digest("hex");
  return { folder, file: { path, name, bytes: 9, sha256, mime: "image/png" } };
}

function publisher(settings: Partial<PublishPlace>, environment = {}, cwd = tmpdir()) {
  const clock = new ManualClock(1_000_000);
  return openPublisher(
    { to: null, command: null, expiresMs: hour, ...settings },
    {
      environment: { PATH: process.env["PATH"], ...environment },
      cwd,
      clock,
      interrupt: new AbortController().signal,
    },
  );
}

describe("publishing", () => {
  it("knows what it may publish to", () => {
    const good = ["s3://inputs", "s3://inputs/a", "https://cdn.example.com/in", "http://127.0.0.1:9/x/"];
    expect(good.filter(isPublishTarget)).toEqual(good);
    const bad = [
      "inputs",
      "file:///tmp",
      "https://",
      "https://cdn.example.com/?a=b",
      "ftp://x/",
      "http://cdn.example.com/in",
    ];
    expect(bad.filter(isPublishTarget)).toEqual([]);
  });

  it("to an address: the file is there already", async () => {
    const { file } = photo();
    const to = "https://cdn.example.com/in";
    expect(await publisher({ to }).publish(file)).toEqual({
      url: "https://cdn.example.com/in/shoes/red%20shoe.png",
      until: null,
    });
  });

  it("to a bucket: uploads a content once, and signs it again", async () => {
    const environment = await s3Server();
    const { file } = photo();
    const to = "s3://inputs/photos";
    const first = await publisher({ to }, environment).publish(file);
    expect(first.until).toBe(1_000_000 + hour);
    expect(await (await fetch(first.url)).text()).toBe("a picture");
    // The file is gone: another upload would fail.
    const again = await publisher({ to }, environment).publish({ ...file, path: "/nowhere" });
    expect(await (await fetch(again.url)).text()).toBe("a picture");
  });

  it("by a command: its last line is the address", async () => {
    const { folder, file } = photo();
    const command =
      'echo "uploading $BULKGEN_NAME"; cat "$BULKGEN_FILE" > copy; echo "https://x.example/$BULKGEN_SHA256?a=b&c=d"';
    const published = await publisher({ command }, {}, folder).publish(file);
    expect(published).toEqual({ url: `https://x.example/${file.sha256}?a=b&c=d`, until: 1_000_000 + hour });
    expect(existsSync(join(folder, "copy"))).toBe(true);
  });

  it("by a command, which is not told the API key", async () => {
    const { file } = photo();
    const command = 'echo "https://x.example/key-$BULKGEN_API_KEY-"';
    const { url } = await publisher({ command }, { BULKGEN_API_KEY: "svc_secret" }).publish(file);
    expect(url).toBe("https://x.example/key--");
  });

  it.each([
    ["no-such-program-here 2>/dev/null", /ended with 127 \(not found\)/],
    ["true", /gave no address .* got nothing/],
    [
      "echo file:///tmp/red.png",
      /expected an https:\/\/ address on its last line, got "file:\/\/\/tmp\/red\.png"/,
    ],
    ["echo https://a.example/x y", /got "https:\/\/a\.example\/x y"/],
  ])("by a command that fails: %s", async (command, message) => {
    await expect(publisher({ command }).publish(photo().file)).rejects.toThrow(message);
  });

  it("by a command that ends and leaves its output open in another session: it is over when its time is", async () => {
    const left =
      'require("child_process").spawn("sleep", ["9"], { detached: true, stdio: ["ignore", "inherit", "ignore"] }).unref()';
    const late = new AbortController();
    const began = performance.now();
    const running = runShell({
      command: `${process.execPath} -e '${left}'`,
      cwd: tmpdir(),
      environment: { PATH: process.env["PATH"] },
      facts: {},
      signal: late.signal,
      reads: "stdout",
    });
    await systemClock.sleep(1_500);
    late.abort();
    expect((await running).trouble).toBe("did not end in time and was stopped");
    expect(performance.now() - began).toBeLessThan(8_000);
  });

  it("says what is missing before anything is uploaded", () => {
    expect(() => publisher({ to: "s3://inputs" })).toThrow(
      "s3://inputs cannot be used: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
    expect(() => publisher({ to: "inputs" })).toThrow(
      'expected s3://bucket/prefix, or the https:// address of a folder, got "inputs"',
    );
  });
});
