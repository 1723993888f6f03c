"""Makes known.json by another implementation of AES-256-GCM (the package `cryptography`).

    python3 tests/vault/make_known.py > tests/vault/known.json
"""
import base64
import json
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEK, DEK = bytes(range(32)), bytes(range(100, 132))
FIELD, JOB, REQUESTER, VERSION = b"storage_creds", b"job-7", b"requester-1", 3


def bound(kind, *more):
    parts = [kind, struct.pack(">q", 1), FIELD, JOB, REQUESTER, struct.pack(">q", VERSION), *more]
    return b"".join(struct.pack(">Q", len(part)) + part for part in parts)


def seal(key, nonce, aad, plain):
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, plain, aad)).decode()


plain = b'{"access_key":"AK","secret_key":"\xc3\xa9"}'
print(json.dumps({
    "kek": base64.b64encode(KEK).decode(),
    "plain": base64.b64encode(plain).decode(),
    "sealed": {
        "storage_creds_encrypted": seal(DEK, bytes(12), bound(b"leasehold.vault.blob"), plain),
        "storage_creds_dek_wrapped": seal(KEK, bytes(range(12)), bound(b"leasehold.vault.wrap", b"2026-11"), DEK),
        "storage_creds_kek_id": "2026-11",
        "storage_creds_encryption_version": 1,
    },
}, indent=1))
