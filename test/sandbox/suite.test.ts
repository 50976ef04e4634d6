import { afterAll, describe, expect, it } from "vitest";
import type { SwitchSettings } from "../../src/service/state/switches.js";
import { profileOf, saveProfile } from "./suite/profile.js";
import { onASocket, realService, worldInProcess } from "./suite/subjects.js";
import { takeTour } from "./suite/tour.js";
import { serviceSuite } from "./suite.js";

serviceSuite("The world in process", () => worldInProcess(), "in our hands");
serviceSuite("A sandbox on a socket", onASocket, "in our hands");

const { BULKGEN_SUITE_BASE_URL: baseUrl, BULKGEN_API_KEY: key, BULKGEN_SUITE_PROFILE: file } = process.env;
if (baseUrl && key) {
  const notes: string[] = [];
  serviceSuite(
    baseUrl,
    () => realService(baseUrl, key),
    "real",
    (profile) => {
      notes.push(...profile.notes);
      saveProfile(profile, file ?? "service-profile.json");
    },
  );
  afterAll(() => console.log(`Where the page is silent, ${baseUrl}:\n  ${notes.join("\n  ")}`));
}

describe("a profile", () => {
  const told: SwitchSettings[] = [
    {},
    { parametersLeftOut: "absent", badFilter: "ignored", errorShape: "flat", signing: "once" },
    { requestIds: true, rateLimitHeaders: true, errorShape: "string", requestsCount: "succeeded" },
    { requestsCount: "generates", outputs: { number: 3 }, price: { models: { "aurora-image-mini": 1.5 } } },
  ];

  /** On a plan with limits, so that there is something for headers to tell. */
  const open = async (switches: SwitchSettings) => {
    const subject = await worldInProcess(switches);
    subject.hands?.state.db.exec("update accounts set plan = 'Pro'");
    return subject;
  };

  it.each(told)("finds the switches that the service was played with: %j", async (switches) => {
    const subject = await open(switches);
    const found = profileOf(await takeTour(subject)).switches;
    expect(found).toMatchObject(switches);
    const again = await open(found);
    expect(profileOf(await takeTour(again)).switches).toEqual(found);
    await Promise.all([subject.close(), again.close()]);
  });
});
