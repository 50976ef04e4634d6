import { ALL_FORMATS, BufferSource, type EncodedPacket, EncodedPacketSink, Input } from "mediabunny";

export interface FilmFacts {
  seconds: number;
  /** Codec names, null for a track that is not there. */
  video: string | null;
  audio: string | null;
  width: number;
  height: number;
  pictures: EncodedPacket[];
}

/** What an audio or video file says of itself. */
export async function filmFacts(bytes: Uint8Array): Promise<FilmFacts> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const video = await input.getPrimaryVideoTrack();
  const audio = await input.getPrimaryAudioTrack();
  const pictures: EncodedPacket[] = [];
  if (video) for await (const packet of new EncodedPacketSink(video).packets()) pictures.push(packet);
  return {
    seconds: await input.computeDuration(),
    video: video?.codec ?? null,
    audio: audio?.codec ?? null,
    width: video?.codedWidth ?? 0,
    height: video?.codedHeight ?? 0,
    pictures,
  };
}
