/** Bodies in the OpenAPI document that readers can send unchanged: one for each operation with a required or optional body. */

const APP = '/v1/vhosts/{vhost}/apps/{app}';
const STREAM = `${APP}/streams/{stream}`;

const PROFILE = {
  name: 'ladder',
  outputStreamName: '${OriginStreamName}_ladder',
  playlists: [
    {
      name: 'abr',
      fileName: 'abr',
      renditions: [
        { name: 'source', video: 'source', audio: 'aac' },
        { name: '360p', video: 'low', audio: 'aac' },
      ],
    },
  ],
  encodes: {
    videos: [
      { name: 'source', bypass: true },
      { name: 'low', codec: 'h264', height: 360, bitrate: 800_000 },
    ],
    audios: [{ name: 'aac', codec: 'aac', bitrate: 128_000, samplerate: 48_000, channel: 2 }],
  },
};
const ID3 = { eventFormat: 'id3v2', eventType: 'video', events: [{ frameType: 'TXXX', info: 'quiz', data: 'question 1' }] };

/** Bodies by method and path of the route. */
export const REQUEST_EXAMPLES: Readonly<Record<string, unknown>> = {
  'POST /v1/vhosts': [{ name: 'mine', host: { names: ['media.example.com'] } }],
  'POST /v1/vhosts/{vhost}/apps': [
    {
      name: 'show',
      type: 'live',
      providers: { rtmp: {}, srt: {}, rtspPull: {} },
      publishers: { llhls: {}, hls: {}, file: { rootPath: 'recordings' }, push: {} },
      outputProfiles: {
        outputProfile: [
          {
            name: 'bypass',
            outputStreamName: '${OriginStreamName}',
            encodes: { videos: [{ name: 'video', bypass: true }], audios: [{ name: 'audio', bypass: true }] },
          },
        ],
      },
    },
  ],
  [`PATCH ${APP}`]: { publishers: { llhls: { segmentDuration: 4 } } },
  [`POST ${APP}/outputProfiles`]: [PROFILE],
  [`PATCH ${APP}/outputProfiles/{profile}`]: { outputStreamName: '${OriginStreamName}_abr' },
  [`POST ${APP}/publishKeys`]: { name: 'studio' },
  [`POST ${APP}/playTokens`]: { name: 'site', expires: '2036-12-31T23:59:59Z', streams: 'live-*' },
  [`POST ${APP}/streams`]: { name: 'door', urls: ['rtsp://192.0.2.20/main'], properties: { persistent: true } },
  [`POST ${APP}/scheduledChannels`]: {
    stream: { name: 'tv' },
    fallbackProgram: { items: [{ url: 'file://slate.mp4' }] },
    programs: [
      {
        name: 'morning',
        scheduled: '2026-11-23T06:00:00[Europe/Berlin]',
        repeat: true,
        items: [{ url: 'file://news.mp4' }, { url: 'stream://default/app/studio', duration: 600_000 }],
      },
    ],
  },
  [`PATCH ${APP}/scheduledChannels/{channel}`]: {
    programs: [{ name: 'evening', scheduled: '2026-11-23T18:00:00+01:00', items: [{ url: 'file://films/one.mp4' }] }],
  },
  [`POST ${APP}/multiplexChannels`]: {
    outputStream: { name: 'tv' },
    sourceStreams: [
      {
        name: 'hd',
        url: 'stream://default/app/hd',
        trackMap: [{ sourceTrackName: 'bypass_video', newTrackName: 'hd_video', bitrateConf: 4_000_000, framerateConf: 30 }],
      },
    ],
    playlists: [{ name: 'abr', fileName: 'abr', renditions: [{ name: 'hd', video: 'hd_video' }] }],
  },
  [`POST ${APP}:startRecord`]: {
    id: 'evening',
    stream: { name: 'live' },
    filePath: 'show/${StartTime:YYYYMMDDhhmmss}.mp4',
    interval: 3_600_000,
  },
  [`POST ${APP}:stopRecord`]: { id: 'evening' },
  [`POST ${APP}:records`]: { id: 'evening' },
  [`POST ${APP}:startPush`]: {
    id: 'platform',
    stream: { name: 'live' },
    protocol: 'rtmp',
    url: 'rtmps://live.example.com/app',
    streamKey: 'abcd-1234',
  },
  [`POST ${APP}:stopPush`]: { id: 'platform' },
  [`POST ${APP}:pushes`]: { id: 'platform' },
  [`POST ${STREAM}:startHlsDump`]: {
    outputStreamName: 'live',
    id: 'd1',
    outputPath: 'hls-dumps/d1',
    playlist: ['llhls.m3u8'],
    infoFile: 'info.xml',
  },
  [`POST ${STREAM}:hlsDumps`]: { outputStreamName: 'live' },
  [`POST ${STREAM}:stopHlsDump`]: { outputStreamName: 'live', id: 'd1' },
  [`POST ${STREAM}:sendEvent`]: ID3,
  [`POST ${STREAM}:sendEvents`]: [ID3, { eventFormat: 'cue', events: [{ cueType: 'out', duration: 60_500 }] }],
  [`POST ${STREAM}:sendSubtitles`]: {
    format: 'webvtt',
    data: [{ label: 'English', subtitles: [{ text: 'Hello', durationMs: 2500, settings: 'line:10%' }] }],
  },
  [`POST ${STREAM}:concludeHlsLive`]: { urgent: true },
  'PATCH /v2/internals/log': { level: 'debug' },
};
