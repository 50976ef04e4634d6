import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allSwitches } from "../../src/service/state/switches.js";
import { inOurHands } from "./suite/in-our-hands.js";
import { type Profile, profileOf } from "./suite/profile.js";
import type { Subject } from "./suite/subject.js";
import { type Tour, takeTour } from "./suite/tour.js";
import { tourSentences } from "./suite/tour-sentences.js";

/**
 * The service's page, sentence by sentence, held against a service. What a real one can be asked comes from one tour
 * of fewer than twenty requests; what needs our own accounts and clock is asked of services in our hands only.
 * `heard` is told what the service does where the page is silent.
 */
export function serviceSuite(
  name: string,
  open: () => Promise<Subject>,
  extent: "in our hands" | "real",
  heard: (profile: Profile) => void = () => {},
): void {
  describe(name, () => {
    describe("on a tour", () => {
      let subject: Subject;
      let tour: Tour;
      beforeAll(async () => {
        subject = await open();
        tour = await takeTour(subject);
      }, 700_000);
      afterAll(() => subject.close());

      it.each(tourSentences)("%s", (_says, holds) => holds(tour));

      it("Where the page is silent, what it does can be played by a sandbox", () => {
        const profile = profileOf(tour);
        expect(() => allSwitches(profile.switches)).not.toThrow();
        heard(profile);
      });
    });
    if (extent === "in our hands") inOurHands(open);
  });
}
