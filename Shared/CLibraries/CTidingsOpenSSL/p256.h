// P-256 point arithmetic for Web Push (RFC 8291) and keys from raw bytes (VAPID, RFC 8292). The textbook EVP calls cost twice as
// much: they check the peer's point twice and set up a context for each key.
#ifndef CTIDINGS_OPENSSL_P256_H
#define CTIDINGS_OPENSSL_P256_H
#include <openssl/param_build.h>

/// The curve, made once and only read afterwards. Never freed.
static inline const EC_GROUP *_Nullable tidings_p256(void) {
    static EC_GROUP *group;
    EC_GROUP *known = __atomic_load_n(&group, __ATOMIC_ACQUIRE);
    if (known) return known;
    EC_GROUP *made = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
    EC_GROUP *expected = NULL;
    if (made && !__atomic_compare_exchange_n(&group, &expected, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        EC_GROUP_free(made);
        return expected;
    }
    return made;
}

/// The uncompressed public point (65 bytes) of a private scalar (32 bytes); 0 when the scalar is 0 or not below the order.
static inline int tidings_p256_public(const unsigned char *_Nonnull scalar, unsigned char *_Nonnull point) {
    const EC_GROUP *group = tidings_p256();
    BN_CTX *context = BN_CTX_secure_new();
    BIGNUM *number = BN_secure_new();
    EC_POINT *result = group ? EC_POINT_new(group) : NULL;
    int isMade = 0;
    if (context && number && result && BN_bin2bn(scalar, 32, number)) {
        BN_set_flags(number, BN_FLG_CONSTTIME);
        isMade = !BN_is_zero(number) && BN_cmp(number, EC_GROUP_get0_order(group)) < 0
            && EC_POINT_mul(group, result, number, NULL, NULL, context) == 1
            && EC_POINT_point2oct(group, result, POINT_CONVERSION_UNCOMPRESSED, point, 65, context) == 65;
    }
    EC_POINT_free(result);
    BN_clear_free(number);
    BN_CTX_free(context);
    return isMade;
}

/// The X coordinate (32 bytes) of scalar times point (65 bytes); 0 when the point is not on the curve.
static inline int tidings_p256_agree(
    const unsigned char *_Nonnull scalar, const unsigned char *_Nonnull point, unsigned char *_Nonnull x
) {
    const EC_GROUP *group = tidings_p256();
    BN_CTX *context = BN_CTX_secure_new();
    BIGNUM *number = BN_secure_new();
    BIGNUM *coordinate = BN_secure_new();
    EC_POINT *peer = group ? EC_POINT_new(group) : NULL;
    int isMade = 0;
    if (context && number && coordinate && peer && BN_bin2bn(scalar, 32, number)) {
        BN_set_flags(number, BN_FLG_CONSTTIME);
        // Reading the octets checks that the point is on the curve.
        isMade = EC_POINT_oct2point(group, peer, point, 65, context) == 1
            && EC_POINT_mul(group, peer, NULL, peer, number, context) == 1
            && EC_POINT_get_affine_coordinates(group, peer, coordinate, NULL, context) == 1
            && BN_bn2binpad(coordinate, x, 32) == 32;
    }
    EC_POINT_clear_free(peer);
    BN_clear_free(coordinate);
    BN_clear_free(number);
    BN_CTX_free(context);
    return isMade;
}

/// A key from its uncompressed point (65 bytes) and, unless NULL, its private scalar (32 bytes); NULL when they are no key.
static inline EVP_PKEY *_Nullable tidings_p256_key(
    const unsigned char *_Nonnull point, const unsigned char *_Nullable scalar
) {
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    BIGNUM *number = scalar ? BN_bin2bn(scalar, 32, NULL) : NULL;
    OSSL_PARAM *parameters = NULL;
    EVP_PKEY_CTX *context = NULL;
    EVP_PKEY *key = NULL;
    if (builder && (!scalar || number)
        && OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0)
        && OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 65)
        && (!scalar || OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number))
        && (parameters = OSSL_PARAM_BLD_to_param(builder))
        && (context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL))
        && EVP_PKEY_fromdata_init(context) == 1
        && EVP_PKEY_fromdata(context, &key, scalar ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(number);
    return key;
}
#endif
