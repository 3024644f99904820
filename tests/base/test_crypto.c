#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crypto.h"
#include "base/mem.h"

/* RFC 8032, section 7.1, tests 1 to 3. */
static const struct {
        const char *key, *message, *signature;
} vectors[] = {
        { "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
          "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e3"
          "9701cf9b46bd25bf5f0595bbe24655141438e7a100b" },
        { "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
          "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3"
          "613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00" },
        { "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
          "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f"
          "760984dc6594a7c15e9716ed28dc027beceea1ec40a" },
};

static void rfc_signatures_verify_and_altered_ones_fail(void **state)
{
        (void)state;
        for (size_t i = 0; i < COUNT(vectors); i++) {
                unsigned char key[ED25519_KEY_SIZE], signature[ED25519_SIGNATURE_SIZE],
                        message[4] = { 0 };
                size_t n = strlen(vectors[i].message) / 2;

                assert_true(crypto_unhex(vectors[i].key, key, sizeof(key)));
                assert_true(crypto_unhex(vectors[i].signature, signature, sizeof(signature)));
                assert_true(crypto_unhex(vectors[i].message, message, n));
                assert_true(crypto_ed25519_verify(key, signature, message, n));
                message[n]++;
                assert_false(crypto_ed25519_verify(key, signature, message, n + 1));
                signature[10] ^= 1;
                assert_false(crypto_ed25519_verify(key, signature, message, n));
                signature[10] ^= 1;
                key[0] ^= 1;
                assert_false(crypto_ed25519_verify(key, signature, message, n));
        }
}

static void hex_of_the_wrong_length_is_rejected(void **state)
{
        unsigned char out[2];

        (void)state;
        assert_true(crypto_unhex("aF09", out, 2));
        assert_int_equal(out[0], 0xaf);
        assert_int_equal(out[1], 0x09);
        assert_false(crypto_unhex("aF0", out, 2));
        assert_false(crypto_unhex("aF091", out, 2));
        assert_false(crypto_unhex("aG09", out, 2));
        assert_false(crypto_unhex(NULL, out, 2));
}

static void base64_is_read_as_it_is_written(void **state)
{
        static const char *const malformed[] = { "a",       "YQ",        "YQ=",      "Y!==",
                                                 "YQ==YQ=", "YQ==   \n", "    YQ==", "YQ==----" };
        char bytes[300], *text, *back;
        size_t n;

        (void)state;
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (char)(i * 7);
        for (size_t length = 0; length <= sizeof(bytes); length++) {
                text = crypto_base64(bytes, length);
                back = crypto_unbase64(text, strlen(text), &n);
                assert_non_null(back);
                assert_int_equal(n, length);
                assert_memory_equal(back, bytes, n);
                assert_int_equal(back[n], '\0');
                free(text);
                free(back);
        }
        for (size_t i = 0; i < COUNT(malformed); i++)
                assert_null(crypto_unbase64(malformed[i], strlen(malformed[i]), &n));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(rfc_signatures_verify_and_altered_ones_fail),
                cmocka_unit_test(hex_of_the_wrong_length_is_rejected),
                cmocka_unit_test(base64_is_read_as_it_is_written),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
