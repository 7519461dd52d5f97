/** Messages of players over the WebSocket protocol beside offers and answers: their playlist and its renditions. */
import { ProtocolError } from '../../../util/protocol-error.ts';
import { type DialogueConnection, OfferDialogue, type OfferRefusal } from '../signalling/offer-dialogue.ts';
import type { PlaySession } from './play-session.ts';
import type { WebrtcPublisher } from './webrtc-publisher.ts';

/** Serves the player at the other end until either ends. */
export function servePlayer(publisher: WebrtcPublisher, connection: DialogueConnection): void {
  const dialogue: OfferDialogue<PlaySession> = new OfferDialogue({
    ...connection,
    peer: 'viewer',
    prepare: (target) => publisher.fetch(target, connection.client),
    open: ({ target, client, onEnded }) =>
      publisher.openSession(target, {
        client,
        onEnded,
        onRendition: (name, auto) =>
          dialogue.send({ command: 'notification', type: 'rendition_changed', message: { rendition_name: name, auto } }),
      }),
    isRefusal: (error): error is OfferRefusal => error instanceof ProtocolError,
    onAnswered: (session) => dialogue.send({ command: 'notification', type: 'playlist', message: playlistOf(session) }),
    onOther: (message, session) => {
      if (message.command !== 'change_rendition') return false;
      if (typeof message.rendition_name === 'string') session?.changeRendition(message.rendition_name);
      if (typeof message.auto === 'boolean') session?.setAuto(message.auto);
      return true;
    },
  });
}

/** `name` is the file name and `file_name` the display name: the reference server has them swapped, players expect it. */
function playlistOf(session: PlaySession): object {
  const renditions = [...session.renditions].sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    name: session.playlist.fileName,
    file_name: session.playlist.name,
    auto: session.auto,
    renditions: renditions.map(({ name, video, audio }) => ({
      name,
      ...(video !== null && { video_track: session.notice(video) }),
      ...(audio !== null && { audio_track: session.notice(audio) }),
    })),
  };
}
