// An identity provider for School Service, of the npm package oidc-provider: machine clients get tokens that the service
// verifies. docs/deployment/identity-providers.md says how it is run.
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import Provider from 'oidc-provider'

const PORT = process.env.PORT ?? 3000
const ISSUER = process.env.ISSUER ?? `http://127.0.0.1:${PORT}`
const KEYS = 'keys.json'

// The private key stays the same from start to start: with another, every token ends.
if (!existsSync(KEYS)) {
  const { privateKey } = generateKeyPairSync('ed25519')
  const key = { ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'Ed25519', kid: '1' }
  writeFileSync(KEYS, JSON.stringify({ keys: [key] }), { mode: 0o600 })
}

// What each client may do, and where: ids of schools, permissions as the docs page of the service has them.
const clients = JSON.parse(readFileSync('clients.json'))

const provider = new Provider(ISSUER, {
  jwks: JSON.parse(readFileSync(KEYS)),
  clients: clients.map(({ id, secret }) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    id_token_signed_response_alg: 'Ed25519',
  })),
  enabledJWA: { idTokenSigningAlgValues: ['Ed25519'] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:school-service',
      getResourceServerInfo: () => ({
        audience: 'school-service',
        scope: '',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 3600,
        jwt: { sign: { alg: 'Ed25519' } },
      }),
    },
  },
  extraTokenClaims(_context, token) {
    const client = clients.find(({ id }) => id === token.clientId)
    return { school_id: client.schools, permissions: client.permissions }
  },
})
provider.proxy = true
provider.listen(PORT, '127.0.0.1', () => console.log(`issuer ${ISSUER}`))
