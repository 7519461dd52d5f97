import { acknowledge } from '../envelope.ts';
import { ApiError } from '../errors.ts';
import { requireObject } from '../refusals.ts';
import type { Route } from '../route.ts';
import { SubtitleRequestSchema, subtitleWishes } from './subtitle-request.ts';

/** Subtitles that reach players with the stream. */
export const subtitleRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/v1/vhosts/{vhost}/apps/{app}/streams/{stream}:sendSubtitles',
    level: 'stream',
    summary: 'Show subtitles on a stream',
    body: SubtitleRequestSchema,
    handle: ({ body, stream, vhost, app }) => {
      const wishes = subtitleWishes(requireObject(body));
      const place = [vhost.name, app.name, stream.name] as const;
      // A refused request shows nothing, because a client that repeats it would show cues twice. An unknown label is reported first, so
      // that a client finds the mistake before there is media.
      const known = new Set(stream.tracks.flatMap((track) => (track.type === 'subtitle' ? [track.publicName] : [])));
      if (wishes.some(({ label }) => !known.has(label))) throw new ApiError('SUBTITLES_NOT_SENT', ...place);
      if (!stream.subtitles.hasTime) throw new ApiError('SUBTITLES_NO_TIME', ...place);
      if (!stream.subtitles.send(wishes)) throw new ApiError('SUBTITLES_NOT_SENT', ...place);
      return acknowledge();
    },
  },
];
