#include "srtp.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "bytes.h"

namespace millrace {
namespace {

constexpr size_t kHmacKeyLength = 20;
constexpr size_t kHmacTagLength = 10;
constexpr size_t kGcmTagLength = 16;
constexpr size_t kGcmIvLength = 12;
constexpr size_t kRtcpHeader = 8;
constexpr uint32_t kEncryptedFlag = 0x80000000;

// AES-CM key derivation with a key derivation rate of 0 (RFC 3711 section 4.3); two zero bytes follow a GCM salt.
bool Derive(Profile profile, const uint8_t* master_key, const uint8_t* master_salt, uint8_t label, uint8_t* out, size_t length) {
  uint8_t iv[16] = {};
  memcpy(iv, master_salt, SaltLength(profile));
  iv[7] ^= label;
  CipherContext context(EVP_CIPHER_CTX_new());
  if (!context || EVP_EncryptInit_ex(context.get(), EVP_aes_128_ctr(), nullptr, master_key, iv) != 1) return false;
  OPENSSL_cleanse(iv, sizeof iv);
  memset(out, 0, length);
  int written = 0;
  return EVP_EncryptUpdate(context.get(), out, &written, out, static_cast<int>(length)) == 1;
}

}  // namespace

FastHmac::~FastHmac() {
  OPENSSL_cleanse(&inner_, sizeof inner_);
  OPENSSL_cleanse(&outer_, sizeof outer_);
}

void FastHmac::SetKey(const uint8_t* key, size_t length) {
  uint8_t pad[64];
  memset(pad, 0x36, sizeof pad);
  for (size_t n = 0; n < length; n += 1) pad[n] ^= key[n];
  SHA1_Init(&inner_);
  SHA1_Update(&inner_, pad, sizeof pad);
  memset(pad, 0x5c, sizeof pad);
  for (size_t n = 0; n < length; n += 1) pad[n] ^= key[n];
  SHA1_Init(&outer_);
  SHA1_Update(&outer_, pad, sizeof pad);
  OPENSSL_cleanse(pad, sizeof pad);
}

void FastHmac::Sign(const uint8_t* data, size_t length, const uint8_t* tail, size_t tail_length, uint8_t out[20]) const {
  SHA_CTX inner = inner_;
  SHA1_Update(&inner, data, length);
  if (tail_length > 0) SHA1_Update(&inner, tail, tail_length);
  uint8_t digest[20];
  SHA1_Final(digest, &inner);
  SHA_CTX outer = outer_;
  SHA1_Update(&outer, digest, sizeof digest);
  SHA1_Final(out, &outer);
}

SrtpCipher::~SrtpCipher() { OPENSSL_cleanse(salt_, sizeof salt_); }

bool SrtpCipher::Init(Profile profile, const uint8_t* master_key, const uint8_t* master_salt, uint8_t label, bool encrypt) {
  profile_ = profile;
  uint8_t key[kMasterKeyLength];
  uint8_t hmac_key[kHmacKeyLength];
  context_.reset(EVP_CIPHER_CTX_new());
  bool ok = context_ && Derive(profile, master_key, master_salt, label, key, sizeof key) &&
            Derive(profile, master_key, master_salt, static_cast<uint8_t>(label + 2), salt_, SaltLength(profile));
  if (ok && profile == Profile::kAeadAes128Gcm) {
    ok = EVP_CipherInit_ex(context_.get(), EVP_aes_128_gcm(), nullptr, key, nullptr, encrypt ? 1 : 0) == 1;
  } else if (ok) {
    ok = EVP_CipherInit_ex(context_.get(), EVP_aes_128_ctr(), nullptr, key, nullptr, 1) == 1 &&
         Derive(profile, master_key, master_salt, static_cast<uint8_t>(label + 1), hmac_key, sizeof hmac_key);
    if (ok) hmac_.SetKey(hmac_key, sizeof hmac_key);
    OPENSSL_cleanse(hmac_key, sizeof hmac_key);
  }
  OPENSSL_cleanse(key, sizeof key);
  return ok;
}

void SrtpCipher::CounterIv(uint32_t ssrc, uint64_t index, uint8_t iv[16]) const {
  memcpy(iv, salt_, 14);
  iv[14] = 0;
  iv[15] = 0;
  for (int n = 0; n < 4; n += 1) iv[4 + n] ^= static_cast<uint8_t>(ssrc >> (24 - 8 * n));
  for (int n = 0; n < 6; n += 1) iv[8 + n] ^= static_cast<uint8_t>(index >> (40 - 8 * n));
}

bool SrtpCipher::KeyStream(const uint8_t iv[16], const uint8_t* from, uint8_t* to, size_t length) {
  int written = 0;
  return EVP_EncryptInit_ex(context_.get(), nullptr, nullptr, nullptr, iv) == 1 &&
         EVP_EncryptUpdate(context_.get(), to, &written, from, static_cast<int>(length)) == 1;
}

bool SrtpCipher::Seal(const uint8_t iv[12], const uint8_t* aad, size_t aad_length, const uint8_t* more, size_t more_length,
                      const uint8_t* from, uint8_t* to, size_t length, uint8_t* tag) {
  int written = 0;
  EVP_CIPHER_CTX* context = context_.get();
  return EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, iv) == 1 &&
         EVP_EncryptUpdate(context, nullptr, &written, aad, static_cast<int>(aad_length)) == 1 &&
         (more_length == 0 || EVP_EncryptUpdate(context, nullptr, &written, more, static_cast<int>(more_length)) == 1) &&
         EVP_EncryptUpdate(context, to, &written, from, static_cast<int>(length)) == 1 &&
         EVP_EncryptFinal_ex(context, to, &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kGcmTagLength, tag) == 1;
}

bool SrtpCipher::Open(const uint8_t iv[12], const uint8_t* aad, size_t aad_length, const uint8_t* more, size_t more_length,
                      uint8_t* data, size_t length, uint8_t* tag) {
  int written = 0;
  EVP_CIPHER_CTX* context = context_.get();
  return EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, iv) == 1 &&
         EVP_DecryptUpdate(context, nullptr, &written, aad, static_cast<int>(aad_length)) == 1 &&
         (more_length == 0 || EVP_DecryptUpdate(context, nullptr, &written, more, static_cast<int>(more_length)) == 1) &&
         EVP_DecryptUpdate(context, data, &written, data, static_cast<int>(length)) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kGcmTagLength, tag) == 1 &&
         EVP_DecryptFinal_ex(context, data + written, &written) == 1;
}

// The GCM vector (RFC 7714 sections 8.1 and 9.1): 16 zero bits, SSRC, 48 bits of index, XOR salt.
static void GcmIv(const uint8_t* salt, uint32_t ssrc, uint64_t index, uint8_t iv[kGcmIvLength]) {
  Write16(iv, 0);
  Write32(iv + 2, ssrc);
  Write16(iv + 6, static_cast<uint32_t>(index >> 32));
  Write32(iv + 8, static_cast<uint32_t>(index));
  for (size_t n = 0; n < kGcmIvLength; n += 1) iv[n] ^= salt[n];
}

size_t SrtpCipher::EncryptRtp(uint8_t* packet, size_t header, size_t length, uint32_t ssrc, uint64_t index, const uint8_t* plain) {
  uint8_t* const payload = packet + header;
  if (plain == nullptr) plain = payload;
  if (profile_ == Profile::kAeadAes128Gcm) {
    uint8_t iv[kGcmIvLength];
    GcmIv(salt_, ssrc, index, iv);
    return Seal(iv, packet, header, nullptr, 0, plain, payload, length - header, packet + length) ? length + kGcmTagLength : 0;
  }
  uint8_t iv[16];
  CounterIv(ssrc, index, iv);
  if (!KeyStream(iv, plain, payload, length - header)) return 0;
  uint8_t roc[4];
  Write32(roc, static_cast<uint32_t>(index >> 16));
  uint8_t tag[20];
  hmac_.Sign(packet, length, roc, sizeof roc, tag);
  memcpy(packet + length, tag, kHmacTagLength);
  return length + kHmacTagLength;
}

size_t SrtpCipher::DecryptRtp(uint8_t* packet, size_t header, size_t length, uint32_t ssrc, uint64_t index) {
  const size_t tag_length = rtp_tag_length();
  if (length < header + tag_length) return 0;
  const size_t plain = length - tag_length;
  if (profile_ == Profile::kAeadAes128Gcm) {
    uint8_t iv[kGcmIvLength];
    GcmIv(salt_, ssrc, index, iv);
    return Open(iv, packet, header, nullptr, 0, packet + header, plain - header, packet + plain) ? plain : 0;
  }
  uint8_t roc[4];
  Write32(roc, static_cast<uint32_t>(index >> 16));
  uint8_t tag[20];
  hmac_.Sign(packet, plain, roc, sizeof roc, tag);
  if (CRYPTO_memcmp(tag, packet + plain, kHmacTagLength) != 0) return 0;
  uint8_t iv[16];
  CounterIv(ssrc, index, iv);
  return KeyStream(iv, packet + header, packet + header, plain - header) ? plain : 0;
}

size_t SrtpCipher::EncryptRtcp(uint8_t* packet, size_t length, uint32_t index) {
  const uint32_t ssrc = Read32(packet + 4);
  uint8_t trailer[4];
  Write32(trailer, index | kEncryptedFlag);
  if (profile_ == Profile::kAeadAes128Gcm) {
    uint8_t iv[kGcmIvLength];
    GcmIv(salt_, ssrc, index, iv);
    uint8_t* const body = packet + kRtcpHeader;
    if (!Seal(iv, packet, kRtcpHeader, trailer, sizeof trailer, body, body, length - kRtcpHeader, packet + length)) return 0;
    memcpy(packet + length + kGcmTagLength, trailer, sizeof trailer);
    return length + kGcmTagLength + sizeof trailer;
  }
  uint8_t iv[16];
  CounterIv(ssrc, index, iv);
  if (!KeyStream(iv, packet + kRtcpHeader, packet + kRtcpHeader, length - kRtcpHeader)) return 0;
  memcpy(packet + length, trailer, sizeof trailer);
  uint8_t tag[20];
  hmac_.Sign(packet, length + sizeof trailer, nullptr, 0, tag);
  memcpy(packet + length + sizeof trailer, tag, kHmacTagLength);
  return length + sizeof trailer + kHmacTagLength;
}

size_t SrtpCipher::DecryptRtcp(uint8_t* packet, size_t length, uint32_t* index) {
  if (length < kRtcpHeader + rtcp_trailer_length()) return 0;
  const size_t plain = length - rtcp_trailer_length();
  const bool gcm = profile_ == Profile::kAeadAes128Gcm;
  uint8_t* trailer = gcm ? packet + length - 4 : packet + plain;
  const uint32_t flagged = Read32(trailer);
  // Unencrypted SRTCP is not accepted.
  if ((flagged & kEncryptedFlag) == 0) return 0;
  *index = flagged & ~kEncryptedFlag;
  const uint32_t ssrc = Read32(packet + 4);
  if (gcm) {
    uint8_t iv[kGcmIvLength];
    GcmIv(salt_, ssrc, *index, iv);
    return Open(iv, packet, kRtcpHeader, trailer, 4, packet + kRtcpHeader, plain - kRtcpHeader, packet + plain) ? plain : 0;
  }
  uint8_t tag[20];
  hmac_.Sign(packet, plain + 4, nullptr, 0, tag);
  if (CRYPTO_memcmp(tag, packet + plain + 4, kHmacTagLength) != 0) return 0;
  uint8_t iv[16];
  CounterIv(ssrc, *index, iv);
  return KeyStream(iv, packet + kRtcpHeader, packet + kRtcpHeader, plain - kRtcpHeader) ? plain : 0;
}

bool ReplayWindow::Fresh(uint64_t index) const {
  if (empty_ || index > newest_) return true;
  const uint64_t age = newest_ - index;
  if (age >= 128) return false;
  return age < 64 ? (low_ >> age & 1) == 0 : (high_ >> (age - 64) & 1) == 0;
}

void ReplayWindow::Mark(uint64_t index) {
  if (empty_) {
    empty_ = false;
    newest_ = index;
    low_ = 1;
    return;
  }
  if (index > newest_) {
    const uint64_t step = index - newest_;
    if (step >= 128) {
      low_ = 0;
      high_ = 0;
    } else if (step >= 64) {
      high_ = low_ << (step - 64);
      low_ = 0;
    } else {
      high_ = high_ << step | low_ >> (64 - step);
      low_ <<= step;
    }
    low_ |= 1;
    newest_ = index;
    return;
  }
  const uint64_t age = newest_ - index;
  if (age < 64) low_ |= uint64_t{1} << age;
  else if (age < 128) high_ |= uint64_t{1} << (age - 64);
}

size_t RtpHeaderLength(const uint8_t* packet, size_t length) {
  if (length < 12 || packet[0] >> 6 != 2) return 0;
  size_t header = 12 + 4 * static_cast<size_t>(packet[0] & 0x0f);
  if ((packet[0] & 0x10) != 0) {
    if (length < header + 4) return 0;
    header += 4 + 4 * static_cast<size_t>(Read16(packet + header + 2));
  }
  return header <= length ? header : 0;
}

bool SrtpReceiver::Init(Profile profile, const uint8_t* key, const uint8_t* salt) {
  return rtp_.Init(profile, key, salt, 0, false) && rtcp_.Init(profile, key, salt, 3, false);
}

Unprotected SrtpReceiver::Rtp(uint8_t* packet, size_t length, size_t* plain) {
  const size_t header = RtpHeaderLength(packet, length);
  if (header == 0 || length < header + rtp_.rtp_tag_length()) return Unprotected::kMalformed;
  const uint32_t ssrc = Read32(packet + 8);
  const uint16_t sequence = Read16(packet + 2);
  Source* source = nullptr;
  for (size_t n = 0; n < source_count_; n += 1)
    if (sources_[n].ssrc == ssrc) source = &sources_[n];
  Source* const place = source == nullptr ? PlaceForAnother() : source;
  if (place == nullptr) return Unprotected::kTooManySources;
  // The roll-over counter is estimated from the newest packet (RFC 3711 appendix A).
  uint64_t index = sequence;
  if (source != nullptr) {
    const uint64_t newest = source->window.newest();
    const int16_t distance = static_cast<int16_t>(sequence - static_cast<uint16_t>(newest));
    if (distance < 0 && newest < static_cast<uint64_t>(-distance)) return Unprotected::kReplayed;
    index = newest + distance;
    if (!source->window.Fresh(index)) return Unprotected::kReplayed;
  }
  *plain = rtp_.DecryptRtp(packet, header, length, ssrc, index);
  if (*plain == 0) return Unprotected::kForged;
  if (source == nullptr) {
    // A source becomes known only by an authentic packet.
    source = place;
    *source = Source();
    source->ssrc = ssrc;
    source_count_ = std::max(source_count_, static_cast<size_t>(source - sources_) + 1);
  }
  packets_ += 1;
  source->heard = packets_;
  source->window.Mark(index);
  return Unprotected::kOk;
}

SrtpReceiver::Source* SrtpReceiver::PlaceForAnother() {
  if (source_count_ < kMaxSources) return &sources_[source_count_];
  Source* oldest = std::min_element(sources_, sources_ + kMaxSources, [](const Source& a, const Source& b) { return a.heard < b.heard; });
  return packets_ - oldest->heard >= kSilence ? oldest : nullptr;
}

Unprotected SrtpReceiver::Rtcp(uint8_t* packet, size_t length, size_t* plain) {
  if (length < kRtcpHeader + rtcp_.rtcp_trailer_length()) return Unprotected::kMalformed;
  uint32_t index = 0;
  *plain = rtcp_.DecryptRtcp(packet, length, &index);
  if (*plain == 0) return Unprotected::kForged;
  if (!rtcp_window_.Fresh(index)) return Unprotected::kReplayed;
  rtcp_window_.Mark(index);
  return Unprotected::kOk;
}

}  // namespace millrace
