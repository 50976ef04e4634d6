import type { InputTrack } from "mediabunny";

/**
 * The packets of a track, one by one. A reader that plays a file goes over a hole in it; whoever walks all packets
 * sees that some are not there, and for H.264 and H.265 that they are not what an encoder writes.
 */

export interface Walk {
  /** Bytes of all packets together. */
  bytes: number;
  packets: number;
  /** What is wrong with one of them, in words. */
  fault: string | null;
}

export async function walkPackets(track: InputTrack): Promise<Walk> {
  const { EncodedPacketSink } = await import("mediabunny");
  const units = await unitFormat(track);
  const walk: Walk = { bytes: 0, packets: 0, fault: null };
  for await (const packet of new EncodedPacketSink(track).packets()) {
    walk.packets++;
    walk.bytes += packet.byteLength;
    const fault = units === null ? null : unitFault(packet.data, units);
    if (fault === null) continue;
    walk.fault = `packet ${walk.packets} ${fault}`;
    break;
  }
  return walk;
}

interface UnitFormat {
  /** Bytes of the length before each unit. */
  lengthBytes: number;
}

/** How a video track's packets are divided into units; null where they are not, or not with lengths. */
async function unitFormat(track: InputTrack): Promise<UnitFormat | null> {
  const codec = track.codec;
  if (!track.isVideoTrack() || (codec !== "avc" && codec !== "hevc")) return null;
  const description = (await track.getDecoderConfig())?.description;
  if (description === undefined) return null;
  const bytes = ArrayBuffer.isView(description)
    ? new Uint8Array(description.buffer, description.byteOffset, description.byteLength)
    : new Uint8Array(description);
  const sizes = bytes[codec === "avc" ? 4 : 21];
  return sizes === undefined ? null : { lengthBytes: (sizes & 3) + 1 };
}

/**
 * Units follow each other with their lengths and fill the packet. Within one, two zero bytes are never followed by
 * 0, 1 or 2: encoders put a 3 in between, so that such a run can only be damage. Zeros at the end are padding.
 */
function unitFault(packet: Uint8Array, { lengthBytes }: UnitFormat): string | null {
  const bytes = Buffer.from(packet.buffer, packet.byteOffset, packet.byteLength);
  for (let at = 0; at < bytes.length; ) {
    if (at + lengthBytes > bytes.length) return "ends within the length of a unit";
    const length = bytes.readUIntBE(at, lengthBytes);
    const unit = bytes.subarray(at + lengthBytes, at + lengthBytes + length);
    if (length === 0 || unit.length < length) return `has a unit of ${length} bytes`;
    if (((unit[0] ?? 0) & 0x80) !== 0) return "has a unit that is none";
    if (holdsRun(unit)) return "has a run of zeros that no encoder writes";
    at += lengthBytes + length;
  }
  return null;
}

const zeros = Buffer.from([0, 0]);

function holdsRun(unit: Buffer): boolean {
  let end = unit.length;
  while (end > 0 && unit[end - 1] === 0) end--;
  for (let at = unit.indexOf(zeros); at >= 0 && at + 2 < end; at = unit.indexOf(zeros, at + 1)) {
    if ((unit[at + 2] ?? 3) <= 2) return true;
  }
  return false;
}
