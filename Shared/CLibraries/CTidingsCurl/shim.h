#ifndef CTIDINGS_CURL_SHIM_H
#define CTIDINGS_CURL_SHIM_H
#if !__has_include(<curl/curl.h>)
#error "Tidings needs libcurl: install the Debian package libcurl4-openssl-dev"
#else
#include <curl/curl.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

// Variadic functions do not reach Swift.
static inline CURLcode tidings_curl_set_long(CURL *_Nonnull easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode tidings_curl_set_string(CURL *_Nonnull easy, CURLoption option, const char *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode tidings_curl_set_pointer(CURL *_Nonnull easy, CURLoption option, void *_Nullable value) {
    return curl_easy_setopt(easy, option, value);
}
/// Copies the bytes.
static inline CURLcode tidings_curl_set_bytes(
    CURL *_Nonnull easy, CURLoption option, const void *_Nonnull bytes, size_t count
) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}
typedef size_t (*tidings_curl_data_callback)(char *_Nullable, size_t, size_t, void *_Nullable);
static inline CURLcode tidings_curl_set_write(CURL *_Nonnull easy, tidings_curl_data_callback _Nonnull callback) {
    return curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, callback);
}
static inline CURLcode tidings_curl_set_header(CURL *_Nonnull easy, tidings_curl_data_callback _Nonnull callback) {
    return curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, callback);
}
static inline CURLMcode tidings_curl_multi_socket_function(
    CURLM *_Nonnull multi, curl_socket_callback _Nonnull callback, void *_Nullable context
) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
    return code ? code : curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
}
static inline CURLMcode tidings_curl_multi_timer_function(
    CURLM *_Nonnull multi, curl_multi_timer_callback _Nonnull callback, void *_Nullable context
) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
    return code ? code : curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}
// An address that belongs to this machine or its network (RFC 6890): loopback, private, link-local, shared, unspecified,
// multicast and reserved, and IPv4 inside IPv6.
static inline int tidings_is_private4(uint32_t address) {
    return address >> 24 == 0 || address >> 24 == 10 || address >> 24 == 127 || address >> 28 >= 14
        || address >> 16 == 0xA9FE || address >> 20 == 0xAC1 || address >> 16 == 0xC0A8
        || address >> 22 == 0x6440 >> 6 || address >> 8 == 0xC00000 || address >> 17 == 0xC612 >> 1;
}
static inline int tidings_is_private(const struct sockaddr *_Nonnull address) {
    if (address->sa_family == AF_INET) {
        return tidings_is_private4(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
    }
    if (address->sa_family != AF_INET6) return 1;
    const unsigned char *bytes = ((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr;
    uint32_t last = (uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 | bytes[15];
    static const unsigned char zeros[12], mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    static const unsigned char nat64[12] = {0x00, 0x64, 0xFF, 0x9B};
    if (!memcmp(bytes, zeros, 12) || !memcmp(bytes, mapped, 12) || !memcmp(bytes, nat64, 12)) {
        return tidings_is_private4(last);
    }
    // Global unicast is 2000::/3; 6to4 carries an IPv4 address.
    if (bytes[0] == 0x20 && bytes[1] == 0x02) {
        return tidings_is_private4((uint32_t)bytes[2] << 24 | (uint32_t)bytes[3] << 16 | (uint32_t)bytes[4] << 8 | bytes[5]);
    }
    return (bytes[0] & 0xE0) != 0x20;
}
static inline curl_socket_t tidings_curl_open_public(void *_Nullable context, curlsocktype purpose,
    struct curl_sockaddr *_Nonnull address) {
    (void)context;
    (void)purpose;
    if (tidings_is_private(&address->addr)) return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype, address->protocol);
}
// Without a proxy, which would look the name up itself.
static inline void tidings_curl_refuse_private(CURL *_Nonnull easy) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, tidings_curl_open_public);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
}
static inline long tidings_curl_status(CURL *_Nonnull easy) {
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status;
}
static inline void *_Nullable tidings_curl_private(CURL *_Nonnull easy) {
    char *context = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &context);
    return context;
}
static inline CURLcode tidings_curl_message_result(const CURLMsg *_Nonnull message) { return message->data.result; }
#endif
#endif
