/** Tags of operations, by their paths: the first that matches. Readers of the document show them in this order. */
export const TAGS: readonly { readonly name: string; readonly path: RegExp; readonly description: string }[] = [
  { name: 'Statistics', path: /^\/v\d\/stats\//, description: 'Bytes, bitrates and viewers, of the server down to one viewer' },
  { name: 'Recordings', path: /:(?:startRecord|stopRecord|records)$/, description: 'Tasks that write streams into files' },
  { name: 'Pushes', path: /:(?:startPush|stopPush|pushes)$/, description: 'Tasks that send streams on to other servers' },
  { name: 'Dumps', path: /HlsDumps?$|:hlsDumps$/, description: 'LL-HLS kept as files' },
  {
    name: 'Events and subtitles',
    path: /:(?:sendEvents?|sendSubtitles|concludeHlsLive)$/,
    description: 'What is put onto a stream for its viewers',
  },
  { name: 'Certificates', path: /Certificates?$/, description: 'Certificate files, read again' },
  { name: 'Viewer sessions', path: /\/sessions/, description: 'Who watches a stream' },
  { name: 'Streams', path: /\/streams/, description: 'Inbound streams, published or pulled' },
  { name: 'Channels', path: /Channels/, description: 'Streams made of files and of other streams' },
  { name: 'Keys', path: /\/(?:publishKeys|playTokens)/, description: 'Who may publish and play' },
  { name: 'Output profiles', path: /\/outputProfiles/, description: 'What is encoded' },
  { name: 'Applications', path: /\/apps/, description: 'What takes and serves streams' },
  { name: 'Virtual hosts', path: /\/vhosts/, description: 'Host names with applications of their own' },
  { name: 'Server', path: /^/, description: 'The server itself' },
];
