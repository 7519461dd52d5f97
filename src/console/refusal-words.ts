/** Why access control refuses somebody, in words. */

/** Reasons of access control, as the server counts them. */
export const REASONS: Readonly<Record<string, string>> = {
  'key-missing': 'there was no key or token',
  'key-wrong': 'the key or token is not one of the application',
  'key-expired': 'the time of the key or token is over',
  'key-other-stream': 'the key or token is for other streams',
  'url-unsigned': 'the address is not signed',
  'signature-wrong': 'the signature does not fit the address',
  'policy-unreadable': 'the policy cannot be read',
  'policy-invalid': 'the policy lacks a member or has a wrong one',
  'url-expired': 'the time of the address is over',
  'url-expired-seconds': 'the time of the address is over: it looks like seconds and counts milliseconds',
  'url-not-yet': 'the time of the address has not begun',
  'stream-expired': 'the time of the session is over',
  'direction-wrong': 'the address is signed for the other direction',
  'address-wrong': 'the address is signed for another client',
  'real-address-wrong': 'the address is signed for another client behind the proxy',
  'webhook-refused': 'the control server said no',
  'webhook-failed': 'the control server gave no usable answer',
  'webhook-busy': 'the control server is asked too much already',
  'webhook-closed': 'the control server was not asked any more',
  'no-virtual-host': 'its virtual host has changed meanwhile',
  'no-verdict': 'the decision did not come in time',
  'check-failed': 'access could not be checked',
};
