import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedVideoPacketSource,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  type VideoCodec,
  WavOutputFormat,
  WebMOutputFormat,
} from "mediabunny";
import sharp from "sharp";
import { createMp3Encoder, createOggEncoder } from "wasm-media-encoders";

/** Small real files of each format, made by the libraries that make them elsewhere. */

/** A picture with so much noise that every byte of its file matters. */
function picture() {
  return sharp({
    create: {
      width: 48,
      height: 36,
      channels: 3,
      background: "#3366aa",
      noise: { type: "gaussian", mean: 120, sigma: 40 },
    },
  });
}

/** The packets' content is noise, in one unit of the codec where it has units: nothing of it is decoded. */
async function film(format: OutputFormat, codec: VideoCodec, description?: Uint8Array): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format, target });
  const source = new EncodedVideoPacketSource(codec);
  output.addVideoTrack(source, { frameRate: 10 });
  await output.start();
  const decoderConfig = {
    codec: codec === "avc" ? "avc1.42001e" : "vp8",
    codedWidth: 64,
    codedHeight: 48,
    ...(description === undefined ? {} : { description }),
  };
  for (let frame = 0; frame < 10; frame++) {
    const packet = new EncodedPacket(
      Uint8Array.from({ length: 150 }, (_, index) =>
        index < 4 && codec === "avc" ? (index === 3 ? 146 : 0) : 1 + ((index * 31 + frame * 17) % 119),
      ),
      frame === 0 ? "key" : "delta",
      frame / 10,
      1 / 10,
    );
    await source.add(packet, frame === 0 ? { decoderConfig } : undefined);
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

/** The smallest decoder configuration that says "AVC baseline". */
const avcConfig = Uint8Array.from([1, 0x42, 0, 0x1e, 0xff, 0xe0, 0]);

async function wav(): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format: new WavOutputFormat(), target });
  const source = new EncodedAudioPacketSource("pcm-s16");
  output.addAudioTrack(source);
  await output.start();
  const packet = new EncodedPacket(
    Uint8Array.from(tone(), (value) => Math.round(value * 100) + 128),
    "key",
    0,
    0.1,
  );
  await source.add(packet, { decoderConfig: { codec: "pcm-s16", numberOfChannels: 1, sampleRate: 22_050 } });
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

/** Sound in one of the containers that are made for video. */
async function mp4Sound(): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: false }), target });
  const source = new EncodedAudioPacketSource("mp3");
  output.addAudioTrack(source);
  await output.start();
  const packet = new EncodedPacket(new Uint8Array(104).fill(1), "key", 0, 1152 / 44_100);
  await source.add(packet, { decoderConfig: { codec: "mp3", numberOfChannels: 1, sampleRate: 44_100 } });
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

async function opus(): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format: new OggOutputFormat(), target });
  const source = new EncodedAudioPacketSource("opus");
  output.addAudioTrack(source);
  await output.start();
  const packet = new EncodedPacket(Uint8Array.from([0xfc, 0xff, 0xfe]), "key", 0, 0.02);
  const description = Buffer.from("OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0", "latin1");
  const decoderConfig = { codec: "opus", numberOfChannels: 1, sampleRate: 48_000, description };
  await source.add(packet, { decoderConfig });
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

async function sound(create: typeof createMp3Encoder | typeof createOggEncoder): Promise<Buffer> {
  const encoder = await create();
  encoder.configure({ sampleRate: 44_100, channels: 1 } as never);
  const first = Buffer.from(encoder.encode([tone()]));
  return Buffer.concat([first, Buffer.from(encoder.finalize())]);
}

/** With the note of its number of bytes that an encoder writes when it can go back to its first frame. */
async function notedMp3(): Promise<Buffer> {
  const bytes = await sound(createMp3Encoder);
  bytes.write("Xing", 36, "latin1");
  bytes.writeUInt32BE(2, 40);
  bytes.writeUInt32BE(bytes.length, 44);
  return bytes;
}

function tone(): Float32Array {
  return Float32Array.from({ length: 22_050 }, (_, at) => Math.sin(at / 12) * 0.5);
}

export const media = {
  png: () => picture().png().toBuffer(),
  jpeg: () => picture().jpeg().toBuffer(),
  webp: () => picture().webp({ lossless: true }).toBuffer(),
  webpLossy: () => picture().webp().toBuffer(),
  gif: () => picture().gif().toBuffer(),
  avif: () => picture().avif().toBuffer(),
  mp4: () => film(new Mp4OutputFormat({ fastStart: false }), "avc", avcConfig),
  mp4IndexFirst: () => film(new Mp4OutputFormat({ fastStart: "in-memory" }), "avc", avcConfig),
  mp4Fragmented: () => film(new Mp4OutputFormat({ fastStart: "fragmented" }), "avc", avcConfig),
  webm: () => film(new WebMOutputFormat(), "vp8"),
  wav,
  mp3: () => sound(createMp3Encoder),
  mp3Noted: notedMp3,
  ogg: () => sound(createOggEncoder),
  opus,
  mp4Sound,
};
