//! Signatures as the Standard Webhooks specification has them, and the secrets they are made with. Sends nothing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// What a secret starts with; the key is what follows, decoded.
const PREFIX: &str = "whsec_";

/// Of a new secret: as many as the hash has.
const NEW_BYTES: usize = 32;

/// What the specification allows.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The `webhook-signature` header. A secret is checked before it is stored, so that one that cannot be read is damage.
pub fn sign(secret: &str, id: &str, timestamp: i64, body: &str) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key(secret)?).map_err(|error| error.to_string())?;
    for part in [id, ".", &timestamp.to_string(), ".", body] {
        mac.update(part.as_bytes());
    }
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

pub fn new_secret() -> Result<String, String> {
    let mut bytes = [0; NEW_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("no secret could be made: {error}"))?;
    Ok(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

/// Whether a secret that somebody brings can be signed with. The error never repeats it.
pub fn check_secret(secret: &str) -> Result<(), String> {
    key(secret).map(|_| ())
}

fn key(secret: &str) -> Result<Vec<u8>, String> {
    secret.strip_prefix(PREFIX).and_then(|text| STANDARD.decode(text).ok()).filter(|key| BYTES.contains(&key.len())).ok_or_else(|| {
        format!(
            "that secret cannot be used: write {PREFIX} and then {} to {} bytes in base64, or leave it out to get a new one",
            BYTES.start(),
            BYTES.end()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specifications_own_example() {
        let signature =
            sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn secrets_are_new_each_time_and_of_the_right_length() {
        let (one, two) = (new_secret().expect("random"), new_secret().expect("random"));
        assert_ne!(one, two);
        check_secret(&one).expect("ours can be used");
        for (bytes, is_fine) in [(0, false), (23, false), (24, true), (64, true), (65, false)] {
            let secret = format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
            assert_eq!(check_secret(&secret).is_ok(), is_fine, "{bytes} bytes");
        }
        for secret in ["", "whsec_", "whsec_***", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            let error = check_secret(secret).expect_err(secret);
            assert!(error.contains("whsec_") && !error.contains("MfKQ"), "{error}");
        }
    }
}
