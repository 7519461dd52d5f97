/** OvenPlayer has no declarations of its own; what the console uses of it. Loading the module puts it onto the window. */
declare module 'ovenplayer' {}

interface OvenPlayerInstance {
  on(name: string, listener: (value: never) => void): void;
  getMediaElement(): HTMLVideoElement | null;
  remove(): void;
}

interface Window {
  readonly OvenPlayer: {
    create(container: HTMLElement, options: object): OvenPlayerInstance;
  };
}
