import { expect, test } from "vitest";
import { cronLine, systemdService } from "../../src/schedule/print.js";

const plain = { node: "/usr/bin/node", main: "/opt/bulkgen/main.js", root: "/srv/jobs" };
const odd = { ...plain, root: `/srv/our "jobs" 100% $HOME it's` };

test("the service runs the daemon of the workspace and restarts it after a crash", () => {
  const lines = systemdService(plain).split("\n");
  expect(lines).toContain(
    "ExecStart=/usr/bin/node /opt/bulkgen/main.js schedule start --workspace /srv/jobs",
  );
  expect(lines).toEqual(expect.arrayContaining(["WorkingDirectory=/srv/jobs", "Restart=on-failure"]));
});

test("the line for cron starts the daemon with the machine", () => {
  expect(cronLine(plain)).toBe(
    "@reboot /usr/bin/node /opt/bulkgen/main.js schedule start --workspace /srv/jobs --log-level warn >/dev/null",
  );
});

test("special characters of a path are quoted for systemd and for cron", () => {
  expect(systemdService(odd)).toContain(String.raw`--workspace "/srv/our \"jobs\" 100%% $$HOME it's"`);
  expect(systemdService(odd)).toContain(`WorkingDirectory=/srv/our "jobs" 100%% $HOME it's`);
  expect(cronLine(odd)).toContain(String.raw`--workspace '/srv/our "jobs" 100\% $HOME it'\''s'`);
});
