/** Tags of operations by their paths: the first match is used. Readers of the document show them in this order. */
export const TAGS: readonly { readonly name: string; readonly path: RegExp; readonly description: string }[] = [
  { name: 'Statistics', path: /^\/v\d\/stats\//, description: 'Bytes, bit rates and viewers, from the whole server to a single viewer' },
  { name: 'Recordings', path: /:(?:startRecord|stopRecord|records)$/, description: 'Tasks that write streams into files' },
  { name: 'Pushes', path: /:(?:startPush|stopPush|pushes)$/, description: 'Tasks that push streams to other servers' },
  { name: 'Dumps', path: /HlsDumps?$|:hlsDumps$/, description: 'Dumps: LL-HLS output stored as files' },
  {
    name: 'Events and subtitles',
    path: /:(?:sendEvents?|sendSubtitles|concludeHlsLive)$/,
    description: 'Events and subtitles added to a stream for its viewers',
  },
  { name: 'Certificates', path: /Certificates?$/, description: 'Reloading of certificate files' },
  { name: 'Viewer sessions', path: /\/sessions/, description: 'Viewers of a stream' },
  { name: 'Streams', path: /\/streams/, description: 'Inbound streams, published or pulled' },
  { name: 'Channels', path: /Channels/, description: 'Streams made from files and from other streams' },
  { name: 'Keys', path: /\/(?:publishKeys|playTokens)/, description: 'Keys of publishers and tokens of players' },
  { name: 'Output profiles', path: /\/outputProfiles/, description: 'Encodes and playlists of output streams' },
  { name: 'Applications', path: /\/apps/, description: 'Applications, which accept and serve streams' },
  { name: 'Virtual hosts', path: /\/vhosts/, description: 'Virtual hosts: host names with their own applications' },
  { name: 'Server', path: /^/, description: 'The server itself' },
];
