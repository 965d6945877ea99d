import HTTPMessages
import Testing
import TidingsModels

@testable import PushCredentials

/// Certificates with keys, as the tools of their time write them. One certificate in every form; the password is `secret`.
@Suite("Client identities")
struct ClientIdentityTests {
    /// OpenSSL 3's default: AES-256 with PBKDF2.
    private static let modern = """
        MIIEnAIBAzCCBFIGCSqGSIb3DQEHAaCCBEMEggQ/MIIEOzCCAvIGCSqGSIb3DQEHBqCCAuMwggLfAgEAMIIC2AYJKoZIhvcNAQcB\
        MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjAjz1P2kVRdgICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEExl\
        y3tJXjlShX28/nT0LpGAggJwUQDabXeb7kLsZB85Tr22p2mEdn3a+DhG3OICBBef/O0/uQVEwVS2uywSkUfRqF0I1W2Y6pYJd6vx\
        FdM+6Mgteo5C4OcZLgbWUCd5g7ieAVLQnu3yR9ajOr+Y1Z2y1ZVu3zbl+ybrjlDG59wkaD1YufulWyy8W8a9yUq4T+NuwSg9g7GE\
        i9VlJmLmlWPSjAW+3q3oddl+PmOKMxTTjpS6xDScbZiJlBaesLWn0fvJgD1d+gh9e17A/hQM3xAIT0NaJBqhl6mIuUHiIN3rV05g\
        gX3WEkBwPynXwZGKJ4oWb2emAZeL9/qnKwI37xvAhtVwSbwdddW05VEN0No04dZm3yN8ZcL62aorL3bqoOwaOq5iDXrAVrgYKdAQ\
        kS065J6GxoRyD3Isg1P6///4tjRQrsEApvTUpv7JuMzjwykrixYVIvGt2fLmS+bFNDnP8041f3RutWIhWkFBgdUOXrMFlPdAM7Ra\
        YaICgEHU+e/4i91guqTGchfFw7ZIrMUqjfI3xWGZjW8yUeeKAzAKBXDgkcE7Exigv7i2vyc2Pdx06flyG+d+o3W4Cy/di46zzItd\
        tOQdRtUI4EbyomE1T/v/aE81nNwU03+FUGB20e4XU/ULTvXfZZVIEOCWtR+yEsNEEitrcHcLjGcOdc7QY8kuG7eckjQs+exx4S5G\
        lI+7/AnjZn+X/QY6pQVItiJEbOj87PypWrxbXXOePOiNkaXzixK/5H0o35Vuj77mru7f/cJMQ02LrGlFOY72nA1QybWhOCKeTdUW\
        toX9Qf60VR2tAsBZfFrE6mHIm1zvaIbUht0dzKHz6I4xBiiQ5uKBzbl3MIIBQQYJKoZIhvcNAQcBoIIBMgSCAS4wggEqMIIBJgYL\
        KoZIhvcNAQwKAQKgge8wgewwVwYJKoZIhvcNAQUNMEowKQYJKoZIhvcNAQUMMBwECI+lvMDIAB4xAgIIADAMBggqhkiG9w0CCQUA\
        MB0GCWCGSAFlAwQBKgQQT0KRyF5AfSuPWmPvvy3kJQSBkNxaqIDOITUyHUJ+YXyWxxTyuFqjN1VLyBesPlrDnWP/2buUjFKZCfbE\
        FzB94VZK/z+1xvXwhwuDhsc8/+t+x5EhgbgNu90gdLRZpvw932kYhSDhWPpk/roVNc6u/tLrXNjd//Noec7Qifq8DNM1h4yd1Knx\
        IZNRy+hSMvGsuJZ1N/ffZbLlGWxb2MSj1EngXDElMCMGCSqGSIb3DQEJFTEWBBRXHneoeA0hi21HccpixKbtQ1rIkjBBMDEwDQYJ\
        YIZIAWUDBAIBBQAEIFUQ5S6PGI9s7CqbR0El2ocM3IdZYYKaIKKJjKPTas3nBAi2t/WfvZEutgICCAA=
        """
    /// As Keychain and OpenSSL 1 write it: RC2 with 40 bits, and triple DES.
    private static let legacy = """
        MIIEEgIBAzCCA9gGCSqGSIb3DQEHAaCCA8kEggPFMIIDwTCCArcGCSqGSIb3DQEHBqCCAqgwggKkAgEAMIICnQYJKoZIhvcNAQcB\
        MBwGCiqGSIb3DQEMAQYwDgQIsc/tB5Yq+b0CAggAgIICcIrx+nM5PN+6UzKd6x9a/3MsyZFzSKK/iAuhqDXlyC1PLn7OoaTr4YLb\
        znI72GXlIVCyqqcQbcKSfO3pf6TF0txTGpMwVdXdlorjZzHpuG8tBkphL7hwuUPCttHnj2L5F4jQvFiJSYLoxE9kaQzdUZZvs/YV\
        rEc2Idui3/z6EBBCNznvVv2OhgmqvxVRh52ohdIi/KfiFS68CvDjX4o/l+98VWQOCKexgVUvTLs/blKDSGjTbj7wipvFyL+sx45a\
        petSKc2wIx0iIgZzFXk34xCqKryRV+v7UiAP3MP7bHV1nRNi6vgq41LsrxkA9sEyL77nZdttpm0KquGqE9g3OhAbWI95jTQf4Zar\
        /FW/xA0BtYIL8BjlDJClG9Ov3Flq9tYGbCg39yD7Sm9TVFWwvhnuZESmbByKHnDGZaydHxJdjdhVuErLcZK/X4TfKNU7mHJeuRXN\
        VbknZSRycqXmpVofAT8hSz6Om4Kc3DIRW8tZPcuh8OEokhxabCMZagWr1esT4+5mSt7gOz7PyEpbxqtmjZmPPQHg/uCoRdOswG3D\
        tw06xCBP+fRQjnaHIT4Iz7sewTN3WK2eb+bj7TcWdTh2r/x2IXaCf35ECWBap5bNqOt7XrywY9AgRBzF5tdwUybmuJgZX3152jxj\
        t5Q2NBJv5DK9uRF/AQA31C3hVe+0Za6smg1Zf0oZ23Ba/E4PvvsxrMHvoVI7XgEFUwraC5lrlPuBJlI96u27dEQu/L/Wk18zDW4b\
        4M4eLNyljZJSs+P4hZLurSrCbGEYrOlM6+P/cEEtjQUUprhVvmMuZbgaylU8whyL1nvAOE4z/kdrsDCCAQIGCSqGSIb3DQEHAaCB\
        9ASB8TCB7jCB6wYLKoZIhvcNAQwKAQKggbQwgbEwHAYKKoZIhvcNAQwBAzAOBAiQ2fgeQcM2ywICCAAEgZC29mnWdZoYHpr/Ng1f\
        F7+cOFAVdFjFXKKvNVSkYiYt4KBqFJxZUfsyJ4I8w/sBXuY0dNgrMtuct+7WB5WtGTPw2IskNTKU1wegfxQe3CWeMn+VSxhLip9J\
        v2kj7El/DeAQACIRXSCpPLJZXNOa+2vjObyGWu1+7o24//1rVEd6P3Q/Xi2AGkPKModpCMcaugExJTAjBgkqhkiG9w0BCRUxFgQU\
        Vx53qHgNIYttR3HKYsSm7UNayJIwMTAhMAkGBSsOAwIaBQAEFGH0plfcHbAZ8AuhwFd7xMmlg7OrBAjdlNevi8Cf3AICCAA=
        """
    private static let withoutKey = """
        MIIDNwIBAzCCAu0GCSqGSIb3DQEHAaCCAt4EggLaMIIC1jCCAtIGCSqGSIb3DQEHBqCCAsMwggK/AgEAMIICuAYJKoZIhvcNAQcB\
        MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAh0/T0kYTRqEgICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEECG6\
        kzf2x1LMdx7AjA+iRV+AggJQUX4sx8Egm3ZOhsYONXg7zZlZd9SKl9kP+7dRPrfplWwCCMjeWbJyedZT+6UFUXWRDoh3AIavWO3y\
        CJMDfNDp2zt61D3IIOVuk67RTp8IhUd2/9v+gXM87SRU5hszj1XyjgNq3/fUoHkteKoLsKZhisTSlPQysfDgrjWRFU/xnYTcmcpU\
        w6UZKibSD8F4SPOVfZ4EGl8Ksjq2kxs3LDroY5YA/5YONUgYWLD0hNH+A7hBBl5KVo3lZhl9vi7R0Kfn05JokUQEcw4j+RP4Kzhl\
        vSlFL1crsXp9vPf5NHDOnKPLATAOutg+idh4kNv5H+9YAy2VUYMZzw9yRcSsM4uYDEP6jHwsyKuIeSYwX80Ufc3tWAdN8Wk4vZsZ\
        nPZPIctIbTq29pd/EE26e1M9L3WywjlxTAaXzINzRlV5fptipA02dTk7FGhDvSBSqfL8DNi+ZDeut9ijLsHMd6uXZCTjEosaaAPH\
        DBhCNqxucbaDHUHwMVCjbpzYEQwyRkNnTXVSsMS2R/RNoBqOMuad2ZdkigJnc5m8zDs8sJ/6qDJbt7i1N8mcxnLzaWnRh6esfWLn\
        tH0w+UJpENYGBRJdIpHUiY97ftmC2dEYhQXcWiyKMAFU1CXSt2fgHNz97gtH24inU63AV5ZeV/lxbCTOxdtq+i7j/UaVyTXxv/vO\
        ytcXo38ip4qbVKYeKwVYgLjJcCSfHpYbRnlqOLY9bUKqMb2ylJcLNWgt/V5jWy/DwSatJGSgIPCeJBUmWVTk/R5Y8TuCMs7dndvV\
        DQ5pHTlhdyjPCTBBMDEwDQYJYIZIAWUDBAIBBQAEIOZUxpybuo1JGg2QGOowjnpcapOZygIMuS2rnJWa8TeRBAj5gWr+cqkD/gIC\
        CAA=
        """
    private static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIICETCCAbegAwIBAgIULy8jTdxItWFFT7wTngmoEbiARa0wCgYIKoZIzj0EAwIw
        XTEfMB0GCgmSJomT8ixkAQEMD25ldC5leGFtcGxlLmFwcDEtMCsGA1UEAwwkQXBw
        bGUgUHVzaCBTZXJ2aWNlczogbmV0LmV4YW1wbGUuYXBwMQswCQYDVQQGEwJVUzAg
        Fw0yNjExMzAxOTE5MjRaGA8yMTI2MTEwNjE5MTkyNFowXTEfMB0GCgmSJomT8ixk
        AQEMD25ldC5leGFtcGxlLmFwcDEtMCsGA1UEAwwkQXBwbGUgUHVzaCBTZXJ2aWNl
        czogbmV0LmV4YW1wbGUuYXBwMQswCQYDVQQGEwJVUzBZMBMGByqGSM49AgEGCCqG
        SM49AwEHA0IABJzlfU7q4XZ6g8msSR9gV4QFq1dBkCvZCb+WsIO3cPv7iC+O2l7v
        1a6xuylm+FO1owamJwVv7+miKIuAi7d3/kejUzBRMB0GA1UdDgQWBBRH68eL9aS5
        n3Zr6YcgeaPcc52KITAfBgNVHSMEGDAWgBRH68eL9aS5n3Zr6YcgeaPcc52KITAP
        BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIG0eBZ/k1m6Icu2/9z1w
        CeBZ/1b+zWynfwAW2KiiSgBXAiEA5NeqoCIRleRIxS1DTncVQyOJV+TRVnXWGvEy
        5GSAPso=
        -----END CERTIFICATE-----
        """
    private static let encryptedKey = """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-256-CBC,8DCD3CD286EFBBA145F34AEFACC61263

        NNMWLtGmT+WunK04g0pYbA9HJxOQntcFmYgHJ1XNFi3TK2oaZ6kMZ0WYxApfifXg
        HAGfZoaRNy1mRpjkjBuRS8DJegwSRx9CCBWN/t17RwQKA1thuk4FVeDqXmvWB71G
        ocNL8EoH1x20aht8+oGkYUnjh6UhX+4T99VKvojFr1w=
        -----END EC PRIVATE KEY-----
        """
    private static let fingerprint = "c78c608484b0743f148ea54979173f2e99a91106d231695a1df138a5f1fe507a"

    private func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decode(text)) }

    @Test("PKCS#12 of old and new tools, and PEM with an encrypted key, are one identity")
    func forms() throws {
        let modern = try ClientIdentity(try bytes(Self.modern), password: "secret")
        #expect(Hex.encode(modern.fingerprint) == Self.fingerprint)
        #expect(modern.userID == "net.example.app")
        #expect(modern.expires > Timestamp(seconds: 4_000_000_000))
        #expect(try ClientIdentity(try bytes(Self.legacy), password: "secret") == modern)
        let pem = Array((Self.certificate + "\n" + Self.encryptedKey).utf8)
        #expect(try ClientIdentity(pem, password: "secret") == modern)
        #expect(try ClientIdentity(modern.pem) == modern)
    }

    @Test("what is refused, and why")
    func refusals() throws {
        let pem = Array((Self.certificate + "\n" + Self.encryptedKey).utf8)
        let other = try ClientIdentity.make(name: "other", userID: "other")
        for (text, password, reason) in [
            (try bytes(Self.modern), "wrong", "password"), (try bytes(Self.legacy), "", "password"),
            (try bytes(Self.withoutKey), "secret", "holds a certificate with its private key"),
            (Array(try bytes(Self.modern).dropLast(40)), "secret", "PKCS#12"), ([], "", "PKCS#12"),
            ([0x30, 0x82, 0xFF, 0xFF], "", "PKCS#12"),
            // Without a password nobody is asked for one: a service has no terminal.
            (pem, "", "private key"), (pem, "wrong", "private key"),
            (Array(Self.certificate.utf8), "", "private key"),
            (Array(Self.encryptedKey.utf8), "secret", "no certificate"),
            (Array((Self.certificate + "\n").utf8) + other.privateKey, "", "does not belong"),
        ] {
            let error = #expect(throws: CredentialError.self) {
                try ClientIdentity(text, password: password)
            }
            #expect(error?.description.contains(reason) == true, "\(reason): \(error?.description ?? "")")
        }
    }

    @Test("one of our own: its user id, its end, and another key each time")
    func own() throws {
        let first = try ClientIdentity.make(name: "n", userID: "net.example.app")
        let second = try ClientIdentity.make(name: "n", userID: "net.example.app")
        #expect(first.userID == "net.example.app" && first.fingerprint != second.fingerprint)
        #expect(first.privateKey != second.privateKey)
    }
}
