// The rest of a DTLS 1.2 connection (RFC 6347) once the keys of SRTP are known: it resends a lost last flight and sends the closing alert.
// Takes a hundred bytes instead of the 66 KiB that the library keeps for each connection.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace millrace {

class DtlsTail {
 public:
  // Takes the record keys of a finished handshake. `last_flight`: repeated by a server on request of the client. Null for a cipher suite
  // without AEAD.
  static std::unique_ptr<DtlsTail> Of(SSL* ssl, bool server, std::vector<std::string> last_flight);
  ~DtlsTail();
  DtlsTail(const DtlsTail&) = delete;
  DtlsTail& operator=(const DtlsTail&) = delete;

  // Takes one datagram; what to send is added to `outbox`. True when the peer has ended the connection.
  bool Receive(const uint8_t* data, size_t length, std::vector<std::string>* outbox);
  // The closing alert as a record; each call uses another sequence number.
  std::string CloseNotify();

 private:
  struct Direction {
    uint8_t key[32];
    uint8_t iv[12];
  };

  DtlsTail() = default;
  size_t explicit_nonce() const;
  // AEAD nonce for a record: `sequence` is epoch and sequence number, 8 bytes.
  void Nonce(const Direction& direction, const uint8_t* sequence, const uint8_t* explicit_part, uint8_t nonce[12]) const;
  // Decrypts an alert; false when it is not from the peer.
  bool OpenAlert(const uint8_t* record, size_t length, uint8_t alert[2]) const;

  const EVP_CIPHER* cipher_ = nullptr;
  bool chacha_ = false;
  Direction local_ = {};
  Direction remote_ = {};
  uint64_t next_sequence_ = 0;
  std::vector<std::string> last_flight_;
  int resent_ = 0;
};

}  // namespace millrace
