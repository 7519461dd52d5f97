import { ProtocolError } from '../../util/protocol-error.ts';

/** An invalid request, with the status to answer before the connection is closed. */
export class HttpFault extends ProtocolError {
  readonly status: number;

  constructor(status: number, code: string, detail: string, offset = -1) {
    super(code, detail, offset);
    this.status = status;
  }
}
