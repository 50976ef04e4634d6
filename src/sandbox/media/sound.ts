import {
  ALL_FORMATS,
  BufferSource,
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedPacketSink,
  Input,
  Output,
  WavOutputFormat,
} from "mediabunny";
import { createMp3Encoder } from "wasm-media-encoders";

/** Sound as numbers: one channel, samples from -1 to 1. */
export interface Sound {
  rate: number;
  samples: Float32Array;
}

/** The sound as the bytes of an MP3 or WAV file. */
export function soundFile(sound: Sound, extension: string): Promise<Uint8Array> {
  return extension === "wav" ? wavFile(sound) : mp3File(sound);
}

async function mp3File({ rate, samples }: Sound): Promise<Uint8Array> {
  const encoder = await createMp3Encoder();
  encoder.configure({ sampleRate: rate as 44100, channels: 1, bitrate: 96 });
  const chunks: Uint8Array[] = [];
  // The encoder hands out a view of memory that it uses again, so each chunk is copied.
  for (let at = 0; at < samples.length; at += rate) {
    chunks.push(encoder.encode([samples.subarray(at, at + rate)]).slice());
  }
  chunks.push(encoder.finalize().slice());
  return Buffer.concat(chunks);
}

async function wavFile({ rate, samples }: Sound): Promise<Uint8Array> {
  const target = new BufferTarget();
  const output = new Output({ format: new WavOutputFormat(), target });
  const source = new EncodedAudioPacketSource("pcm-s16");
  output.addAudioTrack(source);
  await output.start();
  const config = { codec: "pcm-s16", sampleRate: rate, numberOfChannels: 1 };
  const packet = new EncodedPacket(sixteenBit(samples), "key", 0, samples.length / rate);
  await source.add(packet, { decoderConfig: config });
  await output.finalize();
  return new Uint8Array(target.buffer ?? new ArrayBuffer(0));
}

function sixteenBit(samples: Float32Array): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(samples.length * 2));
  samples.forEach((sample, index) => {
    bytes.setInt16(index * 2, Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), true);
  });
  return new Uint8Array(bytes.buffer);
}

/** The samples of a 16-bit WAV file, its channels mixed to one; null for sound that cannot be read as numbers. */
export async function readSound(bytes: Uint8Array): Promise<Sound | null> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const track = await input.getPrimaryAudioTrack();
  if (!track) throw new Error("there is no sound in it");
  if (track.codec !== "pcm-s16") return null;
  const channels = track.numberOfChannels;
  const values: number[] = [];
  for await (const packet of new EncodedPacketSink(track).packets()) {
    const view = new DataView(packet.data.buffer, packet.data.byteOffset, packet.data.byteLength);
    for (let at = 0; at + channels * 2 <= view.byteLength; at += channels * 2) {
      let sum = 0;
      for (let channel = 0; channel < channels; channel++) sum += view.getInt16(at + channel * 2, true);
      values.push(sum / channels / 32_768);
    }
  }
  return { rate: track.sampleRate, samples: Float32Array.from(values) };
}

/** How loud the sound is around each frame of a film, from 0 to 1. */
export function loudness({ rate, samples }: Sound, framesPerSecond: number, frames: number): number[] {
  const step = rate / framesPerSecond;
  const levels = Array.from({ length: frames }, (_, frame) => {
    const part = samples.subarray(Math.floor(frame * step), Math.floor((frame + 1) * step));
    const power = part.reduce((sum, sample) => sum + sample * sample, 0) / Math.max(part.length, 1);
    return Math.sqrt(power);
  });
  const loudest = Math.max(...levels, 1e-6);
  return levels.map((level) => level / loudest);
}
