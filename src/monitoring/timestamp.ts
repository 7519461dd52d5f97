export { formatTimestamp } from '../util/timestamp.ts';
