#ifndef CTIDINGS_OPENSSL_SHIM_H
#define CTIDINGS_OPENSSL_SHIM_H
#if !__has_include(<openssl/ssl.h>)
#error "Tidings needs OpenSSL 3: install the Debian package libssl-dev"
#else
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// Function-like macros do not reach Swift.

static inline void tidings_ssl_set_modes(SSL_CTX *_Nonnull context) {
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER
        | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_read_ahead(context, 1);
}
static inline void tidings_ssl_no_tickets(SSL_CTX *_Nonnull context) { SSL_CTX_set_num_tickets(context, 0); }
static inline long tidings_ssl_set_host_name(SSL *_Nonnull ssl, const char *_Nonnull name) {
    return SSL_set_tlsext_host_name(ssl, name);
}
static inline EVP_PKEY *_Nullable tidings_ec_generate(void) { return EVP_EC_gen("P-256"); }
static inline EVP_PKEY *_Nullable tidings_rsa_generate(void) { return EVP_RSA_gen(2048); }
static inline int tidings_is_p256(const EVP_PKEY *_Nonnull key) {
    char name[32];
    size_t length = 0;
    if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return 0;
    if (EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof name, &length) != 1) return 0;
    return strcmp(name, "prime256v1") == 0;
}
static inline int tidings_is_rsa(const EVP_PKEY *_Nonnull key) { return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA; }
static inline long tidings_bio_bytes(BIO *_Nonnull bio, const char *_Nullable *_Nonnull bytes) {
    return BIO_get_mem_data(bio, (char **)bytes);
}
static inline unsigned long tidings_err_reason(unsigned long code) { return ERR_GET_REASON(code); }
static inline int tidings_x509_version_3(X509 *_Nonnull certificate) { return X509_set_version(certificate, 2); }
static inline int tidings_x509_add_extension(
    X509 *_Nonnull certificate, X509 *_Nonnull issuer, int nid, const char *_Nonnull value
) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (!extension) return 0;
    int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}
#include "identity.h"
#include "p256.h"
#endif
#endif
