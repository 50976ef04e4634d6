/** What a model takes as input, and which request fields that makes required. */
export const inputTypes = ["text", "image", "video", "text+image"] as const;
export type InputType = (typeof inputTypes)[number];

/** The request fields that carry input besides the params. */
export const inputFields = ["prompt", "image_url", "video_url", "audio_url"] as const;
export type InputField = (typeof inputFields)[number];

/** The request fields that name media. */
export const mediaFields = ["image_url", "video_url", "audio_url"] as const;
export type MediaField = (typeof mediaFields)[number];

/** The category of media that a field takes. */
export const categoryOf: Readonly<Record<MediaField, string>> = {
  image_url: "image",
  video_url: "video",
  audio_url: "audio",
};

const requiredInputs: Readonly<Record<InputType, readonly InputField[]>> = {
  text: ["prompt"],
  image: ["image_url"],
  video: ["video_url"],
  "text+image": ["prompt", "image_url"],
};

/** The required fields of an input type. An unknown type requires none, so the service decides. */
export function requiredFor(inputType: string): readonly InputField[] {
  return Object.hasOwn(requiredInputs, inputType) ? requiredInputs[inputType as InputType] : [];
}
