import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { media } from "../archive/media.js";
import { s3Server } from "../bucket/s3-server.js";
import { eventually, newPlace, type Place, run, start, started } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, type ScriptedService, startProxy, startService } from "./service.js";

const slow = { timeout: 120_000 };

/** Two rows with one picture, and one with another. */
async function withPictures(): Promise<{ place: Place; service: ScriptedService; picture: Buffer }> {
  const place = newPlace();
  const service = await startService();
  const picture = await media.png();
  writeFileSync(join(place.folder, "red shoe.png"), picture);
  writeFileSync(join(place.folder, "blue.png"), Buffer.concat([picture, Buffer.from("blue")]));
  const rows = ["a,plain-image,a,red shoe.png", "b,plain-image,b,red shoe.png", "c,plain-image,c,blue.png"];
  place.write("s.csv", ["id,model,prompt,image_url", ...rows].join("\n"));
  return { place, service, picture };
}

function addresses({ made }: ScriptedService): string[] {
  return made.map(({ body }) => String(body["image_url"]));
}

describe("local inputs of a run", () => {
  test("are put into a bucket, each content once, and the service gets signed addresses", slow, async () => {
    const { place, service, picture } = await withPictures();
    const env = { ...service.env, ...(await s3Server()) };
    const words = ["s.csv", "--publish", "s3://inputs/photos"];
    const planned = await run(place, ["plan", ...words], { env });
    expect(planned.stdout, planned.stderr).toContain("rough estimate");
    expect(planned.stdout).not.toContain("sandbox");
    const { code, stderr } = await run(place, ["run", ...words, "--yes"], { env });
    expect(code, stderr).toBe(0);
    const [first, second, third] = addresses(service);
    expect(first).toBe(second);
    expect(third).not.toBe(first);
    expect(Buffer.from(await (await fetch(first ?? "")).arrayBuffer()).equals(picture)).toBe(true);
  });

  test("are put there by the built command too, and so are copies of its outputs", slow, async () => {
    const { place, service, picture } = await withPictures();
    const env = { ...service.env, ...(await s3Server()) };
    const words = [
      "run",
      "s.csv",
      "--yes",
      "--publish",
      "s3://inputs/photos",
      "--archive",
      "s3://inputs/out",
    ];
    const { code, stderr } = await start(place, words, { env }).ended;
    expect(code, stderr).toBe(0);
    const [first = ""] = addresses(service);
    expect(Buffer.from(await (await fetch(first)).arrayBuffer()).equals(picture)).toBe(true);
    const verified = await run(place, ["verify", "--json"], { env });
    expect(verified.code, verified.stderr).toBe(0);
  });

  test("are not published where a folder has them already", slow, async () => {
    const { place, service } = await withPictures();
    const words = ["run", "s.csv", "--yes", "--publish", "https://cdn.example.com/in"];
    const { code, stderr } = await run(place, words, service);
    expect(code, stderr).toBe(0);
    expect(addresses(service)).toEqual([
      "https://cdn.example.com/in/red%20shoe.png",
      "https://cdn.example.com/in/red%20shoe.png",
      "https://cdn.example.com/in/blue.png",
    ]);
  });

  test("go through a command once for each content, over all runs", slow, async () => {
    const { place, service } = await withPictures();
    const command = 'echo "$BULKGEN_NAME" >> published.txt; echo "https://x.example/$BULKGEN_SHA256.png"';
    const words = ["--yes", "--publish-command", command];
    expect((await run(place, ["run", "s.csv", ...words], service)).code).toBe(0);
    place.write("s.csv", "id,model,prompt,image_url\nd,plain-image,d,blue.png");
    expect((await run(place, ["run", "s.csv", ...words], service)).code).toBe(0);
    const published = readFileSync(join(place.folder, "published.txt"), "utf8").trim().split("\n");
    expect(published.toSorted()).toEqual(["blue.png", "red shoe.png"]);
    expect(service.made).toHaveLength(4);
  });

  test(
    "are not published under an address with a space, and the command is told what to print",
    slow,
    async () => {
      const { place, service } = await withPictures();
      const words = ["run", "s.csv", "--yes", "--publish-command", "echo https://x.example/45 High Rd.png"];
      const end = await run(place, words, service);
      expect((end.stdout + end.stderr).replace(/\s+/g, " ")).toMatch(
        /the publish command's last line for \S+ has a space in it, and an address has none: print the address alone, with %20/,
      );
      expect(service.made).toEqual([]);
    },
  );

  test("are published again by retry where the service could not read them", slow, async () => {
    const { place, service } = await withPictures();
    place.write("s.csv", "id,model,prompt,image_url\nc,plain-image,c,blue.png");
    place.write("address", "https://x.example/wrong.png");
    const json = { error: { code: "INVALID_INPUT", message: "image_url cannot be reached" } };
    service.script(({ what, body }) =>
      what === "POST generate" && body.includes("wrong") ? { status: 400, json } : "serve",
    );
    const words = ["--yes", "--publish-command", "cat address"];
    const failed = await run(place, ["run", "s.csv", ...words], service);
    expect(failed.stdout).toContain("If --publish was wrong, `bulkgen retry 1 --only input --publish WHERE`");
    place.write("address", "https://x.example/right.png");
    expect((await run(place, ["run", "s.csv", ...words], service)).code).toBe(5);
    const retried = await run(place, ["retry", "--only", "input", ...words], service);
    expect(retried.code, retried.stdout).toBe(0);
    expect(addresses(service)).toEqual(["https://x.example/right.png"]);
  });

  test(
    "a task that was made of an item's own file can be adopted, one of another's file cannot",
    slow,
    async () => {
      const { place } = await withPictures();
      const rows = ["a,atelier-upscale,red shoe.png", "b,atelier-upscale,blue.png"];
      place.write("s.csv", ["id,model,image_url", ...rows].join("\n"));
      const sandbox = await startSandbox();
      const proxy = await startProxy(
        sandbox,
        ({ what }): Scripted => (what === "POST generate" ? "serve and cut" : "serve"),
      );
      const env = { ...proxy.env, ...(await s3Server()) };
      const words = ["run", "s.csv", "--yes", "--lanes", "1", "--publish", "s3://inputs/photos"];
      const first = await run(place, words, { env });
      expect(first, first.stderr).toMatchObject({ code: 10 });
      const [ofShoe, ofBlue] = sandbox.madeSoFar();
      const refused = await run(place, ["resolve", "a", "--adopt", String(ofBlue?.id)], { env });
      expect(refused, refused.stdout).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/does not match a:\n {2}image_url: .* which was sent for b/),
      });
      const adopted = await run(place, ["resolve", "a", "--adopt", String(ofShoe?.id)], { env });
      expect(adopted, adopted.stderr).toMatchObject({
        code: 10,
        stdout: expect.stringMatching(/archived +1/),
      });
    },
  );

  test(
    "that cannot be published leave their items blocked, unpaid; resume tries it again",
    slow,
    async () => {
      const { place, service } = await withPictures();
      place.write("s.csv", "id,model,prompt,image_url\nc,plain-image,c,blue.png");
      const failing = ["--publish-command", "exit 3"];
      const failed = await run(place, ["run", "s.csv", "--yes", ...failing], service);
      expect(failed.code, failed.stderr).toBe(10);
      expect(failed.stdout).toContain("the publish command ended with 3");
      expect(service.count("POST generate")).toBe(0);
      const resumed = await run(place, ["resume", "--yes", "--publish", "https://cdn.example.com"], service);
      expect(resumed.code, resumed.stdout).toBe(0);
      expect(service.count("POST generate")).toBe(1);
    },
  );

  test(
    "that changed after the run was planned are not sent in place of what was agreed to",
    slow,
    async () => {
      const { place, service } = await withPictures();
      const words = ["run", "s.csv", "--yes", "--publish-command", "exit 3"];
      expect((await run(place, words, service)).stdout).toContain("the publish command ended with 3");
      writeFileSync(join(place.folder, "blue.png"), await media.jpeg());
      const resumed = await run(place, ["resume", "--yes", "--publish", "https://cdn.example.com"], service);
      expect(resumed.code).toBe(10);
      expect(resumed.stdout).toContain("blue.png has changed since the run was planned");
      expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(["a", "b"]);
    },
  );

  test("that were moved before they were sent are taken from where the sheet says now", slow, async () => {
    const { place, service } = await withPictures();
    const first = await run(place, ["run", "s.csv", "--yes", "--publish-command", "exit 3"], service);
    expect(first.code).toBe(10);
    mkdirSync(join(place.folder, "photos"));
    for (const name of ["red shoe.png", "blue.png"])
      renameSync(join(place.folder, name), join(place.folder, "photos", name));
    place.write("s.csv", place.read("s.csv").replaceAll(/,([a-z ]+\.png)/g, ",photos/$1"));
    const moved = await run(
      place,
      ["run", "s.csv", "--yes", "--publish", "https://cdn.example.com"],
      service,
    );
    expect(moved.code, moved.stdout).toBe(0);
    expect(addresses(service).at(-1)).toBe("https://cdn.example.com/photos/blue.png");
  });

  test("are problems without a place to publish them to", slow, async () => {
    const { place, service } = await withPictures();
    const { code, stderr } = await run(place, ["run", "s.csv", "--yes"], service);
    expect(code).toBe(2);
    expect(stderr).toContain("--publish");
    const wrong = await run(place, ["run", "s.csv", "--yes", "--publish", "inputs"], service);
    expect(wrong.stderr).toContain(
      '--publish: expected s3://bucket/prefix, or the https:// address of a folder, got "inputs"',
    );
    expect(service.count("POST generate")).toBe(0);
  });

  test("are not waited for after Ctrl-C: the publish command ends, and nothing is paid", slow, async () => {
    const { place, service } = await withPictures();
    const command = "echo publishing >&2; touch begun; sleep 600; echo https://x.example/late.png";
    const words = ["run", "s.csv", "--yes", "--publish-command", command];
    const running = started(place, words, { ...service, serves: true });
    await eventually(() => existsSync(join(place.folder, "begun")) || null);
    running.interrupt();
    expect(await running.ended).toMatchObject({ code: 130 });
    expect(service.count("POST generate")).toBe(0);
    const resumed = await run(place, ["resume", "--yes", "--publish", "https://cdn.example.com"], service);
    expect(resumed.code, resumed.stdout).toBe(0);
    expect(service.count("POST generate")).toBe(3);
  });
});

describe("a place for local inputs that cannot be used", () => {
  test.each([
    ["another key", "s3://inputs/photos", { AWS_ACCESS_KEY_ID: "wrong" }],
    ["another bucket", "s3://no-such-bucket/photos", {}],
    ["a missing variable", "s3://inputs/photos", { AWS_ACCESS_KEY_ID: "" }],
    ["an endpoint where nobody listens", "s3://inputs/photos", { AWS_ENDPOINT_URL: "http://127.0.0.1:9" }],
  ])("is told by plan and run before anything is spent: %s", slow, async (_, to, wrong) => {
    const { place, service } = await withPictures();
    const env = { ...service.env, ...(await s3Server()), ...wrong };
    for (const words of [["plan"], ["run", "--yes"]]) {
      const { code, stderr } = await run(place, [...words, "s.csv", "--publish", to], { env });
      expect([code, stderr]).toEqual([2, expect.stringContaining("--publish: ")]);
    }
    expect(service.count("POST generate")).toBe(0);
    // A sheet without local inputs needs no place for them.
    place.write("s.csv", "id,model,prompt\na,plain-image,a\n");
    expect((await run(place, ["plan", "s.csv", "--publish", to], { env })).code).toBe(0);
  });
});

describe("a job file that says where local inputs are put", () => {
  const job = (publish: string) => `publish: ${publish}
rows: [{ id: a, model: plain-image, prompt: a, image_url: red shoe.png }]
`;

  test("needs no flag, also when the run is resumed", slow, async () => {
    const { place, service } = await withPictures();
    const { to, env } = { to: "s3://inputs/photos", env: { ...service.env, ...(await s3Server()) } };
    place.write("job.yaml", job(`{ to: "${to}", for: 2h }`));
    const unagreed = await run(place, ["plan", "job.yaml"], { env });
    expect([unagreed.code, unagreed.stderr]).toEqual([
      2,
      expect.stringContaining("`bulkgen trust job.yaml`"),
    ]);
    expect((await run(place, ["trust", "job.yaml", "--yes"], { env })).stdout).toContain(`publish: ${to}`);
    const planned = await run(place, ["plan", "job.yaml"], { env });
    expect(planned.code, planned.stdout).toBe(0);
    // Without access to the bucket nothing is begun; where it is lost meanwhile, the run goes on later.
    const failed = await run(place, ["run", "job.yaml", "--yes"], service);
    expect([failed.code, failed.stderr]).toEqual([2, expect.stringContaining("--publish: ")]);
    const capped = await run(place, ["run", "job.yaml", "--yes", "--max-credits", "1"], { env });
    expect(capped.code, capped.stderr).toBe(6);
    const lost = await run(place, ["resume", "--yes", "--max-credits", "9"], service);
    expect([lost.code, lost.stderr]).toEqual([2, expect.stringContaining("--publish: ")]);
    const { code, stderr } = await run(place, ["resume", "--yes", "--max-credits", "9"], { env });
    expect(code, stderr).toBe(0);
    const [address = ""] = addresses(service);
    expect(new URL(address).pathname).toContain("/inputs/photos/");
    expect(new URL(address).searchParams.get("X-Amz-Expires")).toBe("7200");
  });

  test("comes after a flag and a variable, and before the settings files", slow, async () => {
    const { place, service } = await withPictures();
    const made = async (id: string, words: string[], env = {}) => {
      place.write("job.yaml", job("https://job.example/in").replace("prompt: a", `prompt: ${id}`));
      const { code, stderr } = await run(place, ["run", "job.yaml", "--yes", ...words], {
        env: { ...service.env, ...env },
      });
      expect(code, stderr).toBe(0);
      return new URL(addresses(service).at(-1) ?? "").host;
    };
    place.write("bulkgen.config.yaml", "publish: https://config.example\n");
    place.write("job.yaml", job("https://job.example/in"));
    expect((await run(place, ["trust", "job.yaml", "--yes"], service)).stdout).toContain(
      "agreed to 2 values",
    );
    expect(await made("x", [])).toBe("job.example");
    expect(await made("y", ["--publish", "https://flag.example"])).toBe("flag.example");
    expect(await made("z", [], { BULKGEN_PUBLISH: "https://variable.example" })).toBe("variable.example");
    expect(await made("c", ["--publish-command", "echo https://command.example/x.png"])).toBe(
      "command.example",
    );
    place.write("s.csv", "id,model,prompt,image_url\nq,plain-image,q,blue.png");
    expect((await run(place, ["run", "s.csv", "--yes"], service)).code).toBe(0);
    expect(new URL(addresses(service).at(-1) ?? "").host).toBe("config.example");
  });

  test("cannot run a command: whoever wrote the file may be somebody else", slow, async () => {
    const { place, service } = await withPictures();
    place.write("job.yaml", job("{ command: touch ran.txt }"));
    const { code, stderr } = await run(place, ["run", "job.yaml", "--yes"], service);
    expect(code).toBe(2);
    expect(stderr).toContain("--publish-command");
    expect(stderr).toContain("may come from somebody else");
    expect(existsSync(join(place.folder, "ran.txt"))).toBe(false);
    place.write("job.yaml", job("{ to: https://job.example, command: touch ran.txt }"));
    expect((await run(place, ["plan", "job.yaml"], service)).code).toBe(2);
  });

  test.each([
    ["inputs/here", /publish.*s3:\/\/bucket\/prefix/],
    ["{ to: s3://inputs, for: soon }", /a duration such as 24h.*got "soon"/],
    ["s3:///photos", /publish.*s3:\/\/bucket\/prefix/],
    ["{ for: 24h }", /publish/],
  ])("is checked before anything is sent: %s", async (text, message) => {
    const { place, service } = await withPictures();
    place.write("job.yaml", job(text));
    const { code, stdout, stderr } = await run(place, ["plan", "job.yaml"], service);
    expect(code).toBe(2);
    expect(stdout + stderr).toMatch(message);
  });
});
