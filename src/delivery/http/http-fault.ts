import { ProtocolError } from '../../util/protocol-error.ts';

/** A request that cannot be served: the status to answer with before the connection is closed. */
export class HttpFault extends ProtocolError {
  readonly status: number;

  constructor(status: number, code: string, detail: string, offset = -1) {
    super(code, detail, offset);
    this.status = status;
  }
}
