// Certificates with their keys, as a TLS client shows them.
#ifndef CTIDINGS_OPENSSL_IDENTITY_H
#define CTIDINGS_OPENSSL_IDENTITY_H
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <time.h>

/// Never asks a terminal: without a password an encrypted key is refused.
static inline EVP_PKEY *_Nullable tidings_read_private_key(BIO *_Nonnull bio, const char *_Nullable password) {
    return PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(password ? password : ""));
}

/// Writes the certificates of a PKCS#12 file (RFC 7292), the leaf first, and its key as PEM.
///
/// Files of old tools are encrypted with RC2, which only OpenSSL's legacy provider knows: it is loaded for this call alone.
/// - Returns: 1; 0 when the password is wrong; -1 when it is no such file, or holds no certificate with a key.
static inline int tidings_pkcs12_to_pem(
    const unsigned char *_Nonnull bytes, long count, const char *_Nonnull password, BIO *_Nonnull chain, BIO *_Nonnull key
) {
    OSSL_LIB_CTX *library = OSSL_LIB_CTX_new();
    OSSL_PROVIDER *modern = OSSL_PROVIDER_load(library, "default");
    OSSL_PROVIDER *legacy = OSSL_PROVIDER_load(library, "legacy");
    PKCS12 *file = library ? PKCS12_init_ex(NID_pkcs7_data, library, NULL) : NULL;
    EVP_PKEY *private_key = NULL;
    X509 *leaf = NULL;
    STACK_OF(X509) *issuers = NULL;
    int result = -1;
    if (file && modern && d2i_PKCS12(&file, &bytes, count)) {
        if (PKCS12_parse(file, password, &private_key, &leaf, &issuers) != 1) {
            result = ERR_GET_REASON(ERR_peek_last_error()) == PKCS12_R_MAC_VERIFY_FAILURE ? 0 : -1;
        } else if (private_key && leaf && PEM_write_bio_X509(chain, leaf) == 1
            && PEM_write_bio_PrivateKey(key, private_key, NULL, NULL, 0, NULL, NULL) == 1) {
            result = 1;
            for (int index = 0; index < sk_X509_num(issuers); index++) {
                if (PEM_write_bio_X509(chain, sk_X509_value(issuers, index)) != 1) result = -1;
            }
        }
    }
    sk_X509_pop_free(issuers, X509_free);
    X509_free(leaf);
    EVP_PKEY_free(private_key);
    PKCS12_free(file);
    if (legacy) OSSL_PROVIDER_unload(legacy);
    if (modern) OSSL_PROVIDER_unload(modern);
    OSSL_LIB_CTX_free(library);
    ERR_clear_error();
    return result;
}

/// Writes a certificate for TLS clients that is signed by its own new P-256 key, with a user id in its subject (Apple writes the
/// bundle id there), and the key. 1 when done.
static inline int tidings_make_identity(
    const char *_Nonnull name, const char *_Nonnull user, long days, BIO *_Nonnull chain, BIO *_Nonnull key
) {
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_NAME_new();
    BIGNUM *serial = BN_new();
    int isMade = pair && certificate && subject && serial && X509_set_version(certificate, 2) == 1
        && BN_rand(serial, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1
        && BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(certificate))
        && X509_gmtime_adj(X509_getm_notBefore(certificate), -3600)
        && X509_gmtime_adj(X509_getm_notAfter(certificate), days * 86400)
        && X509_NAME_add_entry_by_NID(subject, NID_userId, MBSTRING_UTF8, (const unsigned char *)user, -1, -1, 0) == 1
        && X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) == 1
        && X509_set_subject_name(certificate, subject) == 1 && X509_set_issuer_name(certificate, subject) == 1
        && X509_set_pubkey(certificate, pair) == 1
        && tidings_x509_add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:FALSE") == 1
        && tidings_x509_add_extension(certificate, certificate, NID_key_usage, "critical,digitalSignature") == 1
        && tidings_x509_add_extension(certificate, certificate, NID_ext_key_usage, "clientAuth") == 1
        && X509_sign(certificate, pair, EVP_sha256()) > 0 && PEM_write_bio_X509(chain, certificate) == 1
        && PEM_write_bio_PrivateKey(key, pair, NULL, NULL, 0, NULL, NULL) == 1;
    BN_free(serial);
    X509_NAME_free(subject);
    X509_free(certificate);
    EVP_PKEY_free(pair);
    return isMade;
}

/// The user id of a certificate's subject; its length, or -1 when there is none.
static inline int tidings_x509_user_id(X509 *_Nonnull certificate, char *_Nonnull text, int capacity) {
    return X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_userId, text, capacity);
}

/// When a certificate ends, in seconds since 1970; -1 when it does not say.
static inline int64_t tidings_x509_ends(const X509 *_Nonnull certificate) {
    struct tm moment;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &moment) != 1) return -1;
    return (int64_t)timegm(&moment);
}
#endif
