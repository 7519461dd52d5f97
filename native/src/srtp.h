// SRTP and SRTCP (RFC 3711, RFC 7714) for one direction; packets are protected in place.
#pragma once

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace millrace {

// Protection profiles by their DTLS-SRTP numbers (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
enum class Profile : uint16_t { kAesCm128Sha1_80 = 1, kAeadAes128Gcm = 7 };

constexpr size_t kMasterKeyLength = 16;
constexpr size_t kMaxSaltLength = 14;
// Maximum of bytes that protection adds to an RTP packet, and to an RTCP packet.
constexpr size_t kRtpOverhead = 16;
constexpr size_t kRtcpOverhead = 20;

inline size_t SaltLength(Profile profile) { return profile == Profile::kAeadAes128Gcm ? 12 : 14; }

struct CipherContextFree {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, CipherContextFree>;

// HMAC-SHA1 whose key is hashed once, so that a packet costs only its own bytes.
class FastHmac {
 public:
  FastHmac() = default;
  FastHmac(const FastHmac&) = default;
  FastHmac& operator=(const FastHmac&) = default;
  // Erases the key.
  ~FastHmac();
  void SetKey(const uint8_t* key, size_t length);
  // Writes the 20-byte tag of `data` followed by `tail`.
  void Sign(const uint8_t* data, size_t length, const uint8_t* tail, size_t tail_length, uint8_t out[20]) const;

 private:
  SHA_CTX inner_ = {};
  SHA_CTX outer_ = {};
};

// A cipher with its session salt, for RTP or RTCP in one direction.
class SrtpCipher {
 public:
  SrtpCipher() = default;
  SrtpCipher(SrtpCipher&&) = default;
  SrtpCipher& operator=(SrtpCipher&&) = default;
  // Erases the keys; OpenSSL erases those in its contexts.
  ~SrtpCipher();

  // `label` is the first of the three key derivation labels: 0 for RTP, 3 for RTCP.
  bool Init(Profile profile, const uint8_t* master_key, const uint8_t* master_salt, uint8_t label, bool encrypt);

  // Both work on `packet` in place; its first `header` bytes stay unencrypted.
  // Encrypt returns the new length, 0 on failure; `packet` needs room for kRtpOverhead. If `plain` is given, the payload is read from there
  // and written behind the header, which protects and copies in one step.
  size_t EncryptRtp(uint8_t* packet, size_t header, size_t length, uint32_t ssrc, uint64_t index, const uint8_t* plain = nullptr);
  // Returns the length without the tag; 0 for a packet that is not authentic.
  size_t DecryptRtp(uint8_t* packet, size_t header, size_t length, uint32_t ssrc, uint64_t index);
  size_t EncryptRtcp(uint8_t* packet, size_t length, uint32_t index);
  size_t DecryptRtcp(uint8_t* packet, size_t length, uint32_t* index);

  size_t rtp_tag_length() const { return profile_ == Profile::kAeadAes128Gcm ? 16 : 10; }
  size_t rtcp_trailer_length() const { return rtp_tag_length() + 4; }

 private:
  void CounterIv(uint32_t ssrc, uint64_t index, uint8_t iv[16]) const;
  // Both read `length` bytes at `from` and write them at `to`, which may be the same address.
  bool KeyStream(const uint8_t iv[16], const uint8_t* from, uint8_t* to, size_t length);
  bool Seal(const uint8_t iv[12], const uint8_t* aad, size_t aad_length, const uint8_t* more, size_t more_length, const uint8_t* from,
            uint8_t* to, size_t length, uint8_t* tag);
  bool Open(const uint8_t iv[12], const uint8_t* aad, size_t aad_length, const uint8_t* more, size_t more_length, uint8_t* data,
            size_t length, uint8_t* tag);

  Profile profile_ = Profile::kAeadAes128Gcm;
  CipherContext context_;
  uint8_t salt_[kMaxSaltLength] = {};
  FastHmac hmac_;
};

// Sliding window of 128 packets (RFC 3711 section 3.3.2).
class ReplayWindow {
 public:
  bool Fresh(uint64_t index) const;
  void Mark(uint64_t index);
  bool empty() const { return empty_; }
  uint64_t newest() const { return newest_; }

 private:
  bool empty_ = true;
  uint64_t newest_ = 0;
  // Bit n of the pair: newest_ - n was seen.
  uint64_t low_ = 0;
  uint64_t high_ = 0;
};

enum class Unprotected { kOk, kMalformed, kForged, kReplayed, kTooManySources };

// Receives from one peer. The number of sources (SSRCs) is limited: a new source replaces a silent source, or is refused.
class SrtpReceiver {
 public:
  bool Init(Profile profile, const uint8_t* key, const uint8_t* salt);
  // `plain` becomes the length of the decrypted packet.
  Unprotected Rtp(uint8_t* packet, size_t length, size_t* plain);
  Unprotected Rtcp(uint8_t* packet, size_t length, size_t* plain);

 private:
  static constexpr size_t kMaxSources = 16;
  // A source counts as silent after this many packets of other sources, which takes some seconds. An attacker on the path could then replay
  // its old packets, but would gain nothing.
  static constexpr uint64_t kSilence = 2048;
  struct Source {
    uint32_t ssrc = 0;
    // Number of the peer's packets when this source was last heard.
    uint64_t heard = 0;
    ReplayWindow window;
  };
  // Null when all places are in use.
  Source* PlaceForAnother();
  SrtpCipher rtp_;
  SrtpCipher rtcp_;
  ReplayWindow rtcp_window_;
  Source sources_[kMaxSources];
  size_t source_count_ = 0;
  uint64_t packets_ = 0;
};

// Length of the RTP header with contributing sources and extension; 0 when `packet` is too short for it.
size_t RtpHeaderLength(const uint8_t* packet, size_t length);

}  // namespace millrace
