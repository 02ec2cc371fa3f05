#!/bin/sh
# SPDX-License-Identifier: MIT
# certificates.sh FOLDER - makes PEM files there, NAME.pem and NAME.key each: ca; signed by it server (for localhost and
# 127.0.0.1), client, elsewhere (for a.example and b.example), expired; and stranger, a server's that another CA signed,
# other. of_clients.pem is ca.pem, for a server that asks clients for their certificates.
set -eu
cd "$1"

key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null; }

authority() { # NAME
    key "$1"
    openssl req -x509 -new -key "$1.key" -subj "/CN=holdfast test $1" -days 2 -out "$1.pem"
}

certificate() { # NAME CA DAYS SUBJECT_ALT_NAME
    key "$1"
    printf 'subjectAltName=%s\n' "$4" >"$1.ext"
    openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr"
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -set_serial "$(date +%N)" -days "$3" -extfile "$1.ext" \
        -out "$1.pem" 2>/dev/null
    rm "$1.csr" "$1.ext"
}

authority ca
authority other
cp ca.pem of_clients.pem
certificate server ca 2 DNS:localhost,IP:127.0.0.1
certificate client ca 2 DNS:client.example
certificate elsewhere ca 2 DNS:a.example,DNS:b.example
certificate expired ca 0 DNS:localhost,IP:127.0.0.1
certificate stranger other 2 DNS:localhost,IP:127.0.0.1
