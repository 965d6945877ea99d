#ifndef CTIDINGS_CURL_SHIM_H
#define CTIDINGS_CURL_SHIM_H
#if !__has_include(<curl/curl.h>)
#error "Tidings needs libcurl: install the Debian package libcurl4-openssl-dev"
#else
#include <curl/curl.h>

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
