import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { commandKind } from "../../src/providers/command/kind.js";
import type { Done, JsonObject, ModelSettings, ProviderJob } from "../../src/providers/provider.js";
import { freshFolder, jobOf, mistakesOf, modelOf, openKind, type PlaceParts, unhurried } from "./job.js";

/** Runs a command with these values, and answers with the job's folder and the names of its outputs. */
async function ran(
  details: JsonObject,
  parts: Partial<ProviderJob> = {},
  place: PlaceParts = {},
): Promise<{ job: ProviderJob; names: string[]; text: string }> {
  const job = jobOf(modelOf(details), parts);
  const done = (await openKind(commandKind, place).submit(job, unhurried)) as Done;
  const paths = done.outputs.map((output) => (output as { path: string }).path);
  return { job, names: paths.map((path) => basename(path)), text: readFileSync(paths[0] ?? "", "utf8") };
}

/** Writes its first argument into the file that the second names. */
const write = ["sh", "-c", 'printf %s "$1" > "$2"'];

test.each([
  "a red kite",
  "$(touch pwned) `touch pwned` ; touch pwned & | > pwned",
  "\"; 'quotes' \\ and \\n",
  "-rf",
  "--help",
  "{{ folder }} {% if true %}",
  "<script>alert(1)</script>",
  "two\nlines\tand a tab",
  "* ? [a-z] ~ !!",
  "emoji 🪁 and עברית",
])("the program gets the prompt %j as it is", async (prompt) => {
  const behind = await ran({ command: [...write, "--", "{{ prompt }}", "{{ out }}.txt"] }, { prompt });
  expect([behind.names, behind.text]).toEqual([["out.txt"], prompt]);
  expect(existsSync(join(behind.job.folder, "pwned"))).toBe(false);
  const piped = await ran(
    { command: ["sh", "-c", 'cat > "$0"', "{{ out }}.txt"], stdin: "{{ prompt }}" },
    { prompt },
  );
  expect(piped.text).toBe(prompt);
});

test("a value that would be an option is refused before any --", async () => {
  const command = ["sh", "-c", 'printf %s "$0" > out.txt', "{{ style }}"];
  for (const style of ["-rf", "--upload=https://example.com", "-"])
    await expect(ran({ command }, { params: { style } })).rejects.toMatchObject({
      name: "JobRefused",
      kind: "parameter",
      message: `"${style}" begins with a dash, which the program would take for an option`,
    });
  expect((await ran({ command }, { params: { style: "warm" } })).text).toBe("warm");
  const asFlag = await ran(
    { command: [...command.slice(0, 3), "--style={{ style }}"] },
    { params: { style: "-5" } },
  );
  expect(asFlag.text).toBe("--style=-5");
});

test("what an if leaves out is no word", async () => {
  const command = [
    "sh",
    "-c",
    'printf "%s|" "$@" > out.txt',
    "--",
    "{% if seed %}--seed={{ seed }}{% endif %}",
    "{{ prompt }}",
  ];
  expect((await ran({ command })).text).toBe("a red kite|");
  expect((await ran({ command }, { params: { seed: "7" } })).text).toBe("--seed=7|a red kite|");
});

test("inputs come as paths, and the program works in the job's own folder", async () => {
  const folder = freshFolder();
  const path = join(folder, "kite.png");
  writeFileSync(path, "picture");
  const { job, text } = await ran(
    {
      command: [
        "sh",
        "-c",
        'cat "$1" > out.png; pwd >> out.png; printf "$2" >> out.png',
        "--",
        "{{ image }}",
        "{{ folder }}",
      ],
    },
    { media: { image: { path, type: "image/png", address: null } } },
    { folder },
  );
  expect(text).toBe(`picture${job.folder}\n${folder}`);
});

test("several files come in the order of their numbers, and other files are not results", async () => {
  const { names } = await ran({
    command: [
      "sh",
      "-c",
      "for n in 2 10 1; do echo $n > out-$n.png; done; echo > notes.txt; echo > outer.png; ln -s notes.txt out-3.png",
    ],
  });
  expect(names).toEqual(["out-1.png", "out-2.png", "out-10.png"]);
});

test("the program gets the environment that it is handed, and no more", async () => {
  process.env["BULKGEN_TEST_KEY"] = "secret";
  try {
    const env = { PATH: "/usr/bin:/bin", STYLE: "warm" };
    const { text } = await ran({ command: ["sh", "-c", "env > out.txt"] }, {}, { env });
    expect(text).toContain("STYLE=warm");
    expect(text).not.toContain("secret");
  } finally {
    delete process.env["BULKGEN_TEST_KEY"];
  }
});

test("a failure says the last line of stderr, without paths and colours", async () => {
  const script =
    'echo first >&2; printf "\\033[31mError: $PWD/out.png and /usr/share/models/a.bin: no such model\\033[0m\\n\\n" >&2; exit 3';
  await expect(ran({ command: ["sh", "-c", script] })).rejects.toMatchObject({
    name: "JobRefused",
    kind: "provider",
    billed: false,
    message: "the program failed with exit code 3: Error: out.png and a.bin: no such model",
  });
  const crash =
    "echo 'TypeError: no such style' >&2; echo '    at draw.mjs:3' >&2; echo 'Node.js v20.20.2' >&2; exit 1";
  await expect(ran({ command: ["sh", "-c", crash] })).rejects.toThrow(
    "the program failed with exit code 1: TypeError: no such style",
  );
  await expect(ran({ command: ["sh", "-c", "exit 1"] })).rejects.toThrow(
    /^the program failed with exit code 1$/,
  );
  await expect(ran({ command: ["sh", "-c", "kill -9 $$"] })).rejects.toThrow(
    /^the program was ended by SIGKILL$/,
  );
});

test("addresses in a failure stay whole, and paths with spaces below the home folder lose it", async () => {
  const HOME = join(freshFolder(), "Ada Lovelace");
  const script = 'echo "cannot fetch https://example.com/a/b.bin into $HOME/my models/x.bin" >&2; exit 1';
  const env = { PATH: process.env["PATH"] ?? "", HOME };
  await expect(ran({ command: ["sh", "-c", script] }, {}, { env })).rejects.toThrow(
    /: cannot fetch https:\/\/example\.com\/a\/b\.bin into my models\/x\.bin$/,
  );
});

test("only the end of what it says is kept, however much that is", async () => {
  const script = "yes 'a long line of words' | head -c 3000000 >&2; echo >&2; echo the end >&2; exit 1";
  await expect(ran({ command: ["sh", "-c", script] })).rejects.toThrow(/: the end$/);
});

test("a program without a result, or with an empty one, has failed", async () => {
  await expect(ran({ command: ["sh", "-c", "echo nothing to do >&2"] })).rejects.toMatchObject({
    name: "JobRefused",
    message:
      "the program ended without a file named {{ out }} and an ending, such as out.png; it said: nothing to do",
  });
  await expect(ran({ command: ["sh", "-c", ": > out.png"] })).rejects.toThrow(
    "the program left out.png empty",
  );
  await expect(ran({ command: ["sh", "-c", "mkdir out.png"] })).rejects.toThrow(
    "without a file named {{ out }}",
  );
});

test("a program that takes too long is ended with all that it started", async () => {
  const command = ["sh", "-c", 'sleep 300 & echo $! > child; echo "almost" >&2; wait'];
  const job = jobOf(modelOf({ command }));
  let elapse = () => {};
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    // The timeout comes when the test says so.
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        elapse = resolve;
        signal?.addEventListener("abort", () => resolve(), { once: true });
      }),
  };
  const submit = openKind(commandKind, { clock, timeoutMs: 180_000 }).submit(job, unhurried);
  const failed = expect(submit).rejects.toThrow(/^the program was ended after 3m$/);
  const child = join(job.folder, "child");
  await expect
    .poll(() => existsSync(child) && readFileSync(child, "utf8").endsWith("\n"), { timeout: 60_000 })
    .toBe(true);
  elapse();
  await failed;
  await isGone(Number(readFileSync(child, "utf8")));
});

test("an aborted job ends its program, and may run again", async () => {
  const provider = openKind(commandKind);
  expect(provider.repeatable).toBe("yes");
  const job = jobOf(modelOf({ command: ["sh", "-c", "echo $$ > child; sleep 300"] }));
  const controller = new AbortController();
  const submit = provider.submit(job, controller.signal);
  const failed = expect(submit).rejects.toMatchObject({ name: "AbortError" });
  const child = join(job.folder, "child");
  await expect
    .poll(() => existsSync(child) && readFileSync(child, "utf8").endsWith("\n"), { timeout: 60_000 })
    .toBe(true);
  controller.abort();
  await failed;
  await isGone(Number(readFileSync(child, "utf8")));
  await expect(provider.submit(job, controller.signal)).rejects.toMatchObject({ name: "AbortError" });
});

/** Waits until a process has ended; one that nobody has waited for yet is a zombie. */
async function isGone(pid: number): Promise<void> {
  const state = () => {
    try {
      return /^State:\s*(\S)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "gone";
    } catch {
      return "gone";
    }
  };
  await expect.poll(state, { timeout: 60_000 }).toMatch(/gone|Z|X/);
}

test("what a finished program leaves behind is ended too", async () => {
  const { job } = await ran({ command: ["sh", "-c", "sleep 300 & echo $! > child; echo done > out.txt"] });
  await isGone(Number(readFileSync(join(job.folder, "child"), "utf8")));
});

test("values that no program takes are refused", async () => {
  const command = [...write, "--", "{{ prompt }}", "{{ out }}.txt"];
  await expect(ran({ command }, { prompt: "a\0b" })).rejects.toMatchObject({ kind: "input" });
  await expect(ran({ command }, { prompt: "a".repeat(3_000_000) })).rejects.toMatchObject({
    kind: "input",
    message: "the prompt is too long for a program's argument",
  });
});

test("a check finds programs on the PATH and beside the models file", async () => {
  const folder = freshFolder();
  const script = join(folder, "draw.sh");
  writeFileSync(script, '#!/bin/sh\nprintf %s "$2" > out.txt\n');
  const provider = openKind(commandKind, { folder });
  const check = (program: string) => provider.check?.(unhurried, [modelOf({ command: [program] })]);
  expect(await check("sh")).toBeNull();
  expect(await check("no-such-program")).toBe(
    "no-such-program, which house-style needs, is not on the PATH: install it, or write its whole path",
  );
  expect(await check("./draw.sh")).toContain("is no program that can be run");
  chmodSync(script, 0o755);
  expect(await check("./draw.sh")).toBeNull();
  expect((await ran({ command: ["./draw.sh", "--", "{{ prompt }}"] }, {}, { folder })).text).toBe(
    "a red kite",
  );
  await expect(ran({ command: ["no-such-program"] })).rejects.toMatchObject({
    kind: "provider",
    message: "the program is not installed on the service's machine",
  });
});

test.each<[string, JsonObject, string[], ModelSettings["input"], string[]]>([
  ["a good one", { command: ["draw", "--style={{ style }}", "--", "{{ prompt }}"] }, ["style"], "text", []],
  [
    "a good one with stdin",
    { command: ["draw", "-o", "{{ out }}.png"], stdin: "{{ prompt }}" },
    [],
    "text",
    [],
  ],
  [
    "a script of the folder",
    { command: ["python3", "{{ folder }}/draw.py", "--", "{{ prompt }}"] },
    [],
    "text",
    [],
  ],
  ["an upscaler", { command: ["realesrgan", "-i", "{{ image }}", "-o", "{{ out }}.png"] }, [], "image", []],
  [
    "a prompt as an option",
    { command: ["draw", "{{ prompt }}"] },
    [],
    "text",
    [
      'command.1: a prompt such as "-rf" would be an option here: put "--" before it, write it as --prompt={{ prompt }}, or use stdin: "{{ prompt }}"',
    ],
  ],
  [
    "a prompt as code",
    { command: ["sh", "-c", "draw {{ prompt }}"] },
    [],
    "text",
    [
      'command.2: sh would run what the values say as code: let the code take them as arguments, as in [sh, -c, \'draw "$1"\', --, "{{ prompt }}"]',
    ],
  ],
  [
    "a param as code, behind a launcher",
    { command: ["env", "A=1", "/usr/bin/python3", "-u", "-c", "print('{{ style }}')", "--", "{{ prompt }}"] },
    ["style"],
    "text",
    [
      expect.stringContaining(
        "command.5: python3 would run what the values say as code",
      ) as unknown as string,
    ],
  ],
  [
    "a prompt as the script of stdin",
    { command: ["bash", "-s"], stdin: "{{ prompt }}" },
    [],
    "text",
    [expect.stringContaining("stdin: bash would run what the values say as code") as unknown as string],
  ],
  [
    "unknown and unused names",
    { command: ["draw", "--", "{{ promt }}"] },
    ["style", "out"],
    "text+image",
    [
      "params.out: out is a name that every command has: choose another",
      "command.2: {{ promt }} is no param of this model. Did you mean {{ prompt }}?",
      "command: does not use {{ prompt }}, which the model takes as input",
      "command: does not use {{ image }}, which the model takes as input",
      "params.style: is not used: expected {{ style }} in command or stdin",
    ],
  ],
  [
    "a broken template",
    { command: ["draw", "--", "{{ prompt"], stdin: "{% fi %}" },
    [],
    "text",
    [
      expect.stringContaining("command.2: line 1: output") as unknown as string,
      expect.stringContaining('stdin: line 1: tag "fi" not found') as unknown as string,
      "command: does not use {{ prompt }}, which the model takes as input",
    ],
  ],
  [
    "a program from a value",
    { command: ["{{ folder }}/draw.sh", "--", "{{ prompt }}"] },
    [],
    "text",
    [
      "command.0: the program has to be named as it is, without {{ }}; a path such as ./draw.sh starts at the models file",
    ],
  ],
  [
    "a program that is not there",
    { command: ["./draw", "--", "{{ prompt }}"] },
    [],
    "text",
    ["command.0: there is no program ./draw"],
  ],
])("mistakes of %s", (_, details, params, input, expected) => {
  expect(mistakesOf(commandKind, modelOf(details, { input }), freshFolder(), params)).toEqual(expected);
});
