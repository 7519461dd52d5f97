/** Reasons of refusals by access control as text. */

/** Reasons of access control, by their code in events and metrics. */
export const REASONS: Readonly<Record<string, string>> = {
  'key-missing': 'no key or token was given',
  'key-wrong': 'the key or token is not one of this application',
  'key-expired': 'the key or token has expired',
  'key-other-stream': 'the key or token is for other streams',
  'url-unsigned': 'the URL is not signed',
  'signature-wrong': 'the signature does not match the URL',
  'policy-unreadable': 'the policy cannot be read',
  'policy-invalid': 'a member of the policy is missing or invalid',
  'url-expired': 'the signed URL has expired',
  'url-expired-seconds': 'the signed URL has expired: its time looks like seconds, but counts milliseconds',
  'url-not-yet': 'the signed URL is not valid yet',
  'stream-expired': 'the session has reached the time limit of its signed URL',
  'direction-wrong': 'the URL is signed for the other direction',
  'address-wrong': 'the URL is signed for another address',
  'real-address-wrong': 'the URL is signed for another address behind the proxy',
  'webhook-refused': 'the control server refused',
  'webhook-failed': 'the control server gave no usable answer',
  'webhook-busy': 'too many requests to the control server are under way',
  'webhook-closed': 'the server is stopping',
  'no-virtual-host': 'its virtual host changed meanwhile',
  'no-verdict': 'the decision took too long',
  'check-failed': 'access control failed inside the server',
};
